"""Measures the time of every named query, and its growth with the stored spans.

Fills an embedded store per size with runs of 40 small spans over seven days, a verdict on each, and
runs every named query as the dashboards do, over the last 24 hours, after one run to warm up.

::

    python benchmarks/queries/run.py                              # 1 and 10 million spans
    python benchmarks/queries/run.py --spans 1000000 --only runs summary
    python benchmarks/queries/run.py --keep /tmp/store            # fill once, measure again
"""

from __future__ import annotations

import argparse
import math
import os
import statistics
import sys
import tempfile
import time
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

from filling import DAYS, SPANS_PER_RUN, fill, judge, spread

from mast_trace.exceptions import StorageError
from mast_trace_collector.storage import Store, migrate
from mast_trace_collector.storage.runs import finished_runs
from mast_trace_dashboards.plugins import named_queries
from mast_trace_judge.patterns.indexing import PatternIndexer
from mast_trace_judge.pricing import store_prices
from mast_trace_judge.store.facts import FactsIndexer

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

QUERIES = named_queries()

_CHUNK = 5_000 * SPANS_PER_RUN
_FINISHED = "(the judge scans all runs)"
_FINISHED_OF_LATE = "(the judge scans recent ones)"
_OF_LATE = 25 * 60
_OF_SHOWN_RUNS = frozenset({"cost_of_calls", "cost_of_runs"})


def filled(folder: Path, spans: int, end: datetime) -> Store:
    """Open a store of so many spans in a folder, and fill it if it is new."""
    store = Store.open(f"chdb://{folder}")
    migrate(store)
    if store.query("SELECT count() AS n FROM otel_traces")[0]["n"] >= spans:
        return store
    start = end - timedelta(days=DAYS)
    gap_ms = DAYS * 86_400_000 * SPANS_PER_RUN // spans
    began = time.perf_counter()
    for first in range(0, spans, _CHUNK):
        fill(store, start, first, min(_CHUNK, spans - first), gap_ms)
        print(f"\r{first + _CHUNK:,} of {spans:,} spans", end="", file=sys.stderr, flush=True)
    spread(store)
    for since in (start + timedelta(hours=12 * number) for number in range(2 * DAYS + 1)):
        judge(store, since, since + timedelta(hours=12))
    store_prices(store, {})
    indexers = FactsIndexer(store), PatternIndexer(store)
    indexed = 0
    while new := max(indexer.index() for indexer in indexers):
        indexed += new
        print(f"\r{indexed:,} runs have facts and patterns", end="", file=sys.stderr, flush=True)
    print(f"\nfilled in {time.perf_counter() - began:.0f} s", file=sys.stderr)
    return store


def latencies(
    store: Store, names: Iterable[str], end: datetime, repeat: int
) -> dict[str, tuple[list[float], float]]:
    """Return milliseconds of each query, sorted, and the median ratio to the query `runs`.

    Each call follows a call of `runs`, so that what else the machine does strikes both.
    """
    known = store.query(
        "SELECT TraceId FROM mast_run_states WHERE Start > {t:DateTime64(9)} LIMIT 1",
        {"t": end - timedelta(hours=20)},
    )
    usual = {
        "since": end - timedelta(days=1),
        "until": end,
        "run": known[0]["TraceId"],
        "text": "planner",
    }
    # The list of runs asks for the costs of those that it shows.
    shown = [row["TraceId"] for row in QUERIES["runs"].run(store, since=usual["since"], until=end)]
    found = {}
    for number, name in enumerate(names, 1):
        times, ratios = [], []
        given = {**usual, "only": shown} if name in _OF_SHOWN_RUNS else usual
        for _ in range(repeat + 1):
            reference = _took(store, "runs", usual, end)
            try:
                times.append(_took(store, name, given, end))
            except StorageError as error:
                print(f"\n{name}: {error}", file=sys.stderr)
                times.append(math.inf)
            ratios.append(times[-1] / reference)
            if math.isinf(times[-1]):
                break
        found[name] = (sorted(times[1:] or times), statistics.median(ratios[1:] or ratios))
        print(f"\r{number} queries: {name:<40}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return found


def _took(store: Store, name: str, usual: Mapping[str, Any], end: datetime) -> float:
    """Return the milliseconds that a query takes."""
    query = QUERIES.get(name)
    given = {key: value for key, value in usual.items() if query and key in query.params}
    began = time.perf_counter()
    if query:
        query.run(store, **given)
    else:
        # As if the newest run had arrived just now.
        age = (datetime.now(timezone.utc) - end).total_seconds()
        recent = _OF_LATE + age if name == _FINISHED_OF_LATE else None
        finished_runs(store, judge_version="benchmark", lookback_days=DAYS + 1, recent=recent)
    return (time.perf_counter() - began) * 1e3


def main() -> None:
    """Fill, measure, print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--spans", type=int, nargs="+", default=[1_000_000, 10_000_000])
    parser.add_argument(
        "--only", nargs="+", default=[*QUERIES, _FINISHED_OF_LATE, _FINISHED], metavar="QUERY"
    )
    parser.add_argument("--repeat", type=int, default=15)
    parser.add_argument("--keep", type=Path, help="folder of the stores; filled if they are new")
    options = parser.parse_args()
    end = datetime.now(timezone.utc).replace(minute=0, second=0, microsecond=0)
    print(f"load average before: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    columns = {}
    with tempfile.TemporaryDirectory() as scratch:
        for spans in options.spans:
            folder = (options.keep or Path(scratch)) / str(spans)
            with filled(folder, spans, end) as store:
                newest = store.query("SELECT max(Timestamp) AS t FROM otel_traces")[0]["t"]
                columns[spans] = latencies(store, options.only, newest, options.repeat)
                size = store.query(
                    "SELECT sum(bytes_on_disk) AS n FROM system.parts "
                    "WHERE active AND database = currentDatabase()"
                )[0]["n"]
            print(f"{spans:,} spans: {size / spans:.0f} bytes on disk a span", flush=True)
    heads = [f"{spans:,}: median ms | p95 ms | times `runs`" for spans in columns]
    print(f"\n| query | {' | '.join(heads)} |\n|---|{'---|---|---|' * len(heads)}")
    for name in options.only:
        cells = [
            f"{statistics.median(times):.0f} | {times[int(len(times) * 0.95)]:.0f} | {ratio:.1f}"
            for times, ratio in (columns[spans][name] for spans in columns)
        ]
        print(f"| {name} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
