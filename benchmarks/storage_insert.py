"""Measures how fast the embedded engine stores spans and answers queries.

    python benchmarks/storage_insert.py [--spans 200000] [--per-insert 5120] [--small]

Prints spans per second of wall time and of processor time from serialized requests to rows on the
disk (fsync on), peak memory, bytes on disk, and the median of the queries that people wait for.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import tempfile
import time
from itertools import islice
from typing import TYPE_CHECKING

from ingest.load import agent_shape, small_shape

from mast_trace_collector.storage import Store, migrate
from mast_trace_collector.storage.runs import finished_runs, run_summary, spans_of
from mast_trace_collector.storage.span_writer import SpanWriter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

QUERIES = {
    "newest 50 runs": "SELECT TraceId, Name, Start, End FROM mast_runs ORDER BY Start DESC LIMIT 50",
    "newest 50 runs, every column": "SELECT * FROM mast_runs ORDER BY Start DESC LIMIT 50",
    "failing runs of a service": (
        "SELECT TraceId, Errors FROM mast_runs WHERE ServiceName = 'agents' AND Errors > 0 "
        "ORDER BY Start DESC LIMIT 50"
    ),
    "tokens per hour and operation": (
        "SELECT toStartOfHour(Timestamp) AS t, Operation, sum(InputTokens), count() "
        "FROM otel_traces GROUP BY t, Operation"
    ),
    "tool errors": (
        "SELECT ToolName, countIf(StatusCode = 'Error') / count() FROM otel_traces "
        "WHERE Operation = 'execute_tool' GROUP BY ToolName"
    ),
    "95th percentile per agent": (
        "SELECT AgentName, quantile(0.95)(Duration) FROM otel_traces GROUP BY AgentName"
    ),
}


def batches(total: int, per_insert: int, *, small: bool) -> Iterator[list[bytes]]:
    """Yield inserts of about ``per_insert`` spans in requests of 512."""
    shape = small_shape() if small else agent_shape()
    numbers = iter(range(total // shape.spans))
    while batch := [shape.body(n) for n in islice(numbers, max(1, per_insert // shape.spans))]:
        yield batch


def median_ms(work: Callable[[], object], repeat: int = 7) -> float:
    """Return the median time of ``work`` in milliseconds, after one run to warm up."""
    work()
    times = []
    for _ in range(repeat):
        began = time.perf_counter()
        work()
        times.append(time.perf_counter() - began)
    return statistics.median(times) * 1000


def insert(store: Store, work: Iterable[list[bytes]]) -> int:
    """Store every batch, print the rates and return the number of spans."""
    writer = SpanWriter(store)
    total = size = 0
    wall = cpu = 0.0
    for number, batch in enumerate(work):
        wall_began, cpu_began = time.perf_counter(), time.process_time()
        total += writer.write(batch, token=f"batch-{number}")
        wall += time.perf_counter() - wall_began
        cpu += time.process_time() - cpu_began
        size += sum(map(len, batch))
    print(f"inserted    {total:,} spans of {size / total:,.0f} B in {number + 1} inserts")
    print(f"wall        {total / wall:,.0f} spans/s, {size / wall / 1e6:.1f} MB/s")
    print(f"processor   {total / cpu:,.0f} spans per core and second")
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:,.0f} MiB")
    return total


def report_size(store: Store, total: int) -> None:
    """Print the size of the tables on disk."""
    rows = store.query(
        "SELECT table, sum(bytes_on_disk) AS bytes FROM system.parts "
        "WHERE active AND database = currentDatabase() GROUP BY table ORDER BY bytes DESC LIMIT 3"
    )
    for row in rows:
        print(f"{row['table']:<28}{int(row['bytes']) / total:>8.1f} B a span")


def read(store: Store) -> None:
    """Print the median time of each query."""
    (row,) = store.query("SELECT any(TraceId) AS id, count() AS n FROM mast_runs")
    trace_id = row["id"]
    print(f"{row['n']:,} runs; median milliseconds:")
    for name, sql in QUERIES.items():
        print(f"  {name:<32}{median_ms(lambda sql=sql: store.query(sql)):>8.1f}")
    tasks = {
        "spans of a run": lambda: spans_of(store, [trace_id]),
        "summary of a run": lambda: run_summary(store, trace_id),
        "finished runs, none judged": lambda: finished_runs(
            store, judge_version="x", quiet=0, idle=0
        ),
    }
    for name, task in tasks.items():
        print(f"  {name:<32}{median_ms(task):>8.1f}")


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spans", type=int, default=200_000)
    parser.add_argument("--per-insert", type=int, default=5120)
    parser.add_argument("--small", action="store_true")
    options = parser.parse_args()
    work = batches(options.spans, options.per_insert, small=options.small)
    with tempfile.TemporaryDirectory() as folder, Store.open(f"chdb://{folder}") as store:
        migrate(store)
        total = insert(store, work)
        report_size(store, total)
        read(store)


if __name__ == "__main__":
    main()
