"""Measures the search in texts on spans of 4 KB, with the index of words or without it.

Fills an embedded store with one day of spans: lines of Python's own source, and an order and a request of its own
in each span. Ten million spans in a week are 1,430,000 in a day; a search of the last day reads no others.

::

    python benchmarks/queries/search.py                            # 1,430,000 spans, indexed
    python benchmarks/queries/search.py --spans 100000 --no-index
    python benchmarks/queries/search.py --keep /tmp/store          # fill once, measure again
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import statistics
import sys
import sysconfig
import tempfile
import time
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Final

from mast_trace_collector.storage import Store, migrate
from mast_trace_collector.storage.search_index import add_search_index, has_search_index
from mast_trace_dashboards.web.filters import Filters
from mast_trace_dashboards.web.finding.text_search import TextSearch

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_DAY: Final = timedelta(days=1)
_CHUNK: Final = 20_000
_LINES: Final = 100_000
_RARE_EVERY: Final = 50_021

TEXTS: Final = {
    "a word in a few spans": "Zwiebelkuchen",
    "part of it": "iebelkuche",
    "a phrase with it": "The Zwiebelkuchen was",
    "a word that nobody wrote": "zwiebelkuchenx",
    "the beginning of an order's number": "INV-0001234",
    "frequent: `self`": "self",
    "frequent phrase: `import os`": "import os",
    "absent phrase of frequent words": "return import self def class",
}
"""The sought texts, by what is special about them."""

_FILL: Final = """
INSERT INTO otel_traces (Timestamp, TraceId, SpanId, ParentSpanId, SpanName, SpanKind, ServiceName,
    ResourceAttributes, ScopeName, SpanAttributes, Duration, StatusCode)
WITH (SELECT groupArray(line) FROM corpus) AS lines,
    intDiv(number, 40) AS run, number % 40 AS k,
    lower(hex(cityHash64(run, 'trace'))) AS half,
    ['researcher', 'analyst', 'writer', 'critic', 'planner'][k % 5 + 1] AS agent,
    if(k = 0, 'invoke_workflow', ['chat', 'chat', 'execute_tool', 'send_message'][k % 4 + 1]) AS does,
    (count, what) -> arrayStringConcat(
        arrayMap(i -> lines[1 + cityHash64(number, i, what) % length(lines)], range(count)), '\\n') AS text,
    concat('Order INV-', leftPad(toString(cityHash64(number, 'order') % 100000000), 8, '0'), ', request ',
        lower(hex(cityHash64(number, 'request'))), '. ',
        if(number % {rare:UInt32} = 7, 'The Zwiebelkuchen was overpriced. ', '')) AS own
SELECT
    {start:DateTime64(9)} + toIntervalMicrosecond(number * {gap:UInt64}),
    concat(half, lower(hex(cityHash64(half)))),
    lower(hex(cityHash64(number, 'span'))),
    if(k = 0, '', lower(hex(cityHash64(run * 40, 'span')))),
    if(k = 0, 'invoke_workflow team', concat(does, ' ', agent)),
    'Internal',
    concat('service-', toString(run % 6)),
    map('service.name', concat('service-', toString(run % 6)), 'mast.project', 'default'),
    'mast_trace',
    mapUpdate(
        map('gen_ai.operation.name', does, 'gen_ai.agent.name', agent, 'mast.framework', 'langgraph',
            'mast.message.id', hex(cityHash64(number, 3))),
        multiIf(
            does = 'chat', map('gen_ai.input.messages', text(26, 1), 'gen_ai.usage.input_tokens', '900',
                'gen_ai.usage.output_tokens', '80', 'gen_ai.output.messages', concat(own, text(28, 2))),
            does = 'execute_tool', map('gen_ai.tool.name', 'search', 'gen_ai.tool.call.arguments', text(2, 3),
                'gen_ai.tool.call.result', concat(own, text(46, 4))),
            map('mast.message.sender', agent, 'mast.message.content', concat(own, text(46, 5)),
                'mast.message.recipients', '["planner"]'))),
    90000000, 'Unset'
FROM numbers({first:UInt64}, {count:UInt64})
"""


def lines() -> list[str]:
    """Return lines of Python's standard library that look like words, always the same of one version."""
    found: set[str] = set()
    for path in sorted(Path(sysconfig.get_paths()["stdlib"]).rglob("*.py")):
        if "site-packages" in path.parts:
            continue
        for line in path.read_text("utf-8", errors="ignore").splitlines():
            if 40 <= len(line.strip()) <= 160 and line.strip().count(" ") >= 5:
                found.add(line.strip())
    chosen = sorted(found)
    random.Random(1).shuffle(chosen)
    return chosen[:_LINES]


def filled(folder: Path, spans: int, *, indexed: bool) -> Store:
    """Open a store with one day of spans, and fill it if it is new."""
    store = Store.open(f"chdb://{folder}")
    migrate(store)
    if store.query("SELECT count() AS n FROM otel_traces")[0]["n"] >= spans:
        return store
    if indexed:
        add_search_index(store)
    store.command("CREATE TABLE IF NOT EXISTS corpus (line String) ENGINE = MergeTree ORDER BY ()")
    store.insert("corpus", [{"line": line} for line in lines()])
    start = datetime.now(timezone.utc) - _DAY
    gap = int(_DAY.total_seconds() * 1e6) // spans
    began, used = time.perf_counter(), _processor()
    for first in range(0, spans, _CHUNK):
        given = {"first": first, "count": min(_CHUNK, spans - first), "gap": gap}
        store.command(_FILL, {**given, "start": start, "rare": _RARE_EVERY})
        print(f"\r{first + _CHUNK:,} of {spans:,} spans", end="", file=sys.stderr, flush=True)
    store.command("DROP TABLE corpus")
    print(
        f"\nfilled in {time.perf_counter() - began:.0f} s, {_processor() - used:.0f} s of processor",
        file=sys.stderr,
    )
    return store


def measured(store: Store, repeat: int) -> Iterator[Mapping[str, object]]:
    """Yield a row for each text: hits, and medians of elapsed and of processor seconds."""
    for what, text in TEXTS.items():
        elapsed, processor = [], []
        for _ in range(repeat + 1):
            used, began = _processor(), time.perf_counter()
            search = TextSearch(store, Filters.of({"text": text, "since": "2d"}), of_project=False)
            found = search.hits()
            elapsed.append(time.perf_counter() - began)
            processor.append(_processor() - used)
        yield {
            "what": what,
            "hits": f"{len(found.hits)}{' of more' if found.more else ''}",
            "elapsed": statistics.median(elapsed[1:]),
            "processor": statistics.median(processor[1:]),
        }


def _processor() -> float:
    """Return the processor seconds of this process; the embedded engine runs in it."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def main() -> None:
    """Fill, measure, print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--spans", type=int, default=1_430_000)
    parser.add_argument("--no-index", action="store_true", help="without the index of words")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--keep", type=Path, help="folder of the store; filled if it is new")
    options = parser.parse_args()
    print(f"load average before: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    with (
        tempfile.TemporaryDirectory() as scratch,
        filled(options.keep or Path(scratch), options.spans, indexed=not options.no_index) as store,
    ):
        (size,) = store.query(
            "SELECT sum(bytes_on_disk) AS n, count() AS parts FROM system.parts "
            "WHERE active AND database = currentDatabase() AND table = 'otel_traces'"
        )
        (text,) = store.query(
            "SELECT avg(length(toString(SpanAttributes))) AS n FROM otel_traces LIMIT 1"
        )
        print(
            f"{options.spans:,} spans of {text['n']:.0f} characters, {size['n'] / options.spans:.0f} bytes on disk "
            f"a span, {size['parts']} parts, index: {has_search_index(store)}"
        )
        print("\n| text | hits | seconds | of processor |\n|---|---:|---:|---:|")
        for row in measured(store, options.repeat):
            print(
                f"| {row['what']} | {row['hits']} | {row['elapsed']:.2f} | {row['processor']:.2f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
