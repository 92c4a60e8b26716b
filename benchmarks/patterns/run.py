"""Measures patterns: which planted ones are found, how many false ones there are, and the cost of one more day.

::

    nice python benchmarks/patterns/run.py found                 # planted patterns among noise
    nice python benchmarks/patterns/run.py growth --runs 250000  # incremental, and one more day
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from filling import PLANTED, SERVICES, Planted, fill

from mast_trace_collector.storage import Store, migrate
from mast_trace_dashboards.queries import QUERIES
from mast_trace_judge.patterns.indexing import PatternIndexer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

RESULTS: Final = Path(__file__).with_name("results.json")
_START: Final = datetime(2026, 6, 1, tzinfo=timezone.utc)
_STEP_HOURS: Final = 6
_DAY_MS: Final = 86_400_000
_ALPHA: Final = 0.05
_GROWTH_DAYS: Final = 28


def _is_planted(row: dict[str, Any]) -> Planted | None:
    """Return the planted pattern that a row of the query `patterns` shows."""
    for each in PLANTED:
        if (row["Code"], row["Agent"], row["Tool"]) != (each.code, each.agent, each.tool):
            continue
        words = [word for word in each.text.split() if "{" not in word and "." not in word]
        if not each.text or (row["Text"] and all(word in row["Text"].split() for word in words)):
            return each
    return None


def _store() -> AbstractContextManager[Store]:
    return Store.open(f"chdb://{tempfile.mkdtemp(prefix='patterns-')}")


def _moments(weeks: int) -> Iterator[datetime]:
    for step in range(1, weeks * 7 * 24 // _STEP_HOURS + 1):
        yield _START + timedelta(hours=_STEP_HOURS * step)


def found(seed: int, weeks: int, per_day: int) -> dict[str, Any]:
    """Simulate weeks of runs, and the alert every six hours; return what was found."""
    gap_ms = _DAY_MS // per_day
    first = 0
    alerts: list[tuple[datetime, int, int]] = []
    with _store() as store:
        migrate(store)
        indexer = PatternIndexer(store)
        for moment in _moments(weeks):
            until = int((moment - _START).total_seconds() * 1000) // gap_ms
            fill(store, _START, first, until - first, gap_ms=gap_ms, seed=seed)
            first = until
            while indexer.index():
                pass
            alerts += [
                (moment, int(row["service"][-1]), int(row["Patterns"]))
                for row in QUERIES["new_patterns"].run(store, until=moment)
            ]
            print(f"\rseed {seed}: {moment:%d %b %H} h", end="", file=sys.stderr, flush=True)
        rows = QUERIES["patterns"].run(store, limit=100_000)
    print(file=sys.stderr)
    shown = {each: row for row in rows if (each := _is_planted(row))}
    noise = [row for row in rows if not _is_planted(row)]
    return {
        "seed": seed,
        "weeks": weeks,
        "runs": first,
        "patterns": len(rows),
        "planted": [_told(each, shown.get(each), alerts) for each in PLANTED],
        "false_contrasts": sum(
            row["Corrected"] is not None and row["Corrected"] < _ALPHA for row in noise
        ),
        "tested_noise": sum(row["PValue"] is not None for row in noise),
        "false_alerts": _false(alerts),
    }


def _told(
    each: Planted, row: dict[str, Any] | None, alerts: list[tuple[datetime, int, int]]
) -> dict[str, Any]:
    begun = _START + timedelta(days=each.day)
    told = [moment for moment, service, count in alerts if service == each.service and count]
    delays = [(moment - begun).total_seconds() / 3600 for moment in told if moment > begun]
    return {
        "mode": each.code,
        "agent": each.agent,
        "rate": each.rate,
        "day": each.day,
        "found": row is not None,
        "runs": row["Runs"] if row else 0,
        "text": row["Text"] if row else "",
        "corrected": row["Corrected"] if row else None,
        "hours_to_alert": min(delays) if delays and each.day else None,
    }


def _false(alerts: list[tuple[datetime, int, int]]) -> int:
    """Count episodes in which more new patterns were told of a service than were planted that day."""
    episodes = 0
    for number in range(SERVICES):
        before = 0
        for moment, service, count in alerts:
            if service != number:
                continue
            hours = [
                (moment - _START - timedelta(days=each.day)).total_seconds() / 3600
                for each in PLANTED
                if each.service == number and each.day
            ]
            # A planted pattern is new for a day from its first run on, which may come some hours late.
            excess = max(0, count - sum(0 <= since <= 48 for since in hours))
            episodes += max(0, excess - before)
            before = excess
    return episodes


def growth(runs: int) -> dict[str, Any]:
    """Fill a store, index it day by day, and measure the last day and the queries."""
    per_day = runs // _GROWTH_DAYS
    gap_ms = _DAY_MS // per_day
    days, told = [], {}
    with _store() as store:
        migrate(store)
        indexer = PatternIndexer(store)
        for day in range(_GROWTH_DAYS):
            fill(store, _START, day * per_day, per_day, gap_ms=gap_ms, seed=1)
            began = time.perf_counter()
            while indexer.index():
                pass
            days.append(time.perf_counter() - began)
            print(f"\rday {day + 1}: {days[-1]:.1f} s", end="", file=sys.stderr, flush=True)
        print(file=sys.stderr)
        began = time.perf_counter()
        PatternIndexer(store).index(at_all=True)
        told["nothing_new_seconds"] = round(time.perf_counter() - began, 2)
        end = _START + timedelta(days=_GROWTH_DAYS)
        for name in (
            "runs",
            "patterns",
            "separating_actions",
            "version_regressions",
            "new_patterns",
        ):
            query = QUERIES[name]
            since = {"since": end - timedelta(days=1)} if name == "runs" else {}
            times = []
            for _ in range(6):
                began = time.perf_counter()
                query.run(store, until=end, **since)
                times.append(time.perf_counter() - began)
            told[f"{name}_ms"] = round(1e3 * statistics.median(times[1:]))
        (size,) = store.query(
            "SELECT sum(bytes_on_disk) AS bytes, sum(rows) AS rows FROM system.parts "
            "WHERE active AND table = 'mast_pattern_runs'"
        )
    return {
        "runs": per_day * _GROWTH_DAYS,
        "days": _GROWTH_DAYS,
        "runs_a_day": per_day,
        "first_day_seconds": round(days[0], 1),
        "last_day_seconds": round(statistics.median(days[-3:]), 1),
        "runs_a_second": round(per_day / statistics.median(days[-3:])),
        "bytes_a_run": round(size["bytes"] / max(1, size["rows"])),
        **told,
    }


def main() -> None:
    """Measure, print, and keep the result."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("found", "growth"))
    parser.add_argument("--runs", type=int, default=250_000)
    parser.add_argument("--per-day", type=int, default=1000)
    parser.add_argument("--weeks", type=int, default=4)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    options = parser.parse_args()
    known = json.loads(RESULTS.read_text("utf-8")) if RESULTS.exists() else {}
    known[options.what] = (
        growth(options.runs)
        if options.what == "growth"
        else [found(seed, options.weeks, options.per_day) for seed in options.seeds]
    )
    RESULTS.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(known[options.what], indent=1))


if __name__ == "__main__":
    main()
