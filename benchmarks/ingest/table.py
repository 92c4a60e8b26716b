"""Measures what each part of the span table costs an insert, a merge and the disk: each is taken away by itself.

    python benchmarks/ingest/table.py

One engine holds a copy of the table for each change, and they take turns: each round inserts the same spans, already
in the order of the table, into all of them. CPU is that of the process; then each copy is merged into one part.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from typing import TYPE_CHECKING

from load import agent_shape

from mast_trace_collector.storage import Store, migrate
from mast_trace_collector.storage.span_columns import SPAN_COLUMNS
from mast_trace_collector.storage.span_writer import SpanWriter
from mast_trace_collector.storage.store import deduplication

if TYPE_CHECKING:
    from collections.abc import Callable

ROUNDS = 9  # A tenth part would set off a merge.
REQUESTS = 20
MEMORY = 6 * 1024**3
COLUMNS = ", ".join(SPAN_COLUMNS)
VIEWS = {
    "with both views": "",
    "without the companion": "otel_traces_trace_id_ts_mv",
    "without both": "mast_run_states_mv",
}
"""The views that rows go through, by the one that is dropped for it."""
CHANGES = {
    "attributes in ZSTD(1), not ZSTD(2)": ("ZSTD(2)", "ZSTD(1)"),
    "attributes in LZ4": ("ZSTD(2)", "LZ4"),
    "all others in LZ4": ("ZSTD(1)", "LZ4"),
    "names of attributes as texts": ("Map(LowCardinality(String)", "Map(String"),
    "granules of 8192": ("index_granularity = 1024", "index_granularity = 8192"),
    "sorted by time": ("(TraceId, Timestamp, SpanId)", "(Timestamp, TraceId, SpanId)"),
    "not sorted": ("(TraceId, Timestamp, SpanId)", "tuple()"),
    "a file for each column": ("wide_part = 67108864", "wide_part = 0"),
    "no fsync": ("fsync_after_insert = 1", "fsync_after_insert = 0"),
    "no memory of blocks": ("deduplication_window = 1000", "deduplication_window = 0"),
}
"""Changes of the statement that makes the table: a text of it, and what stands in its place."""


def spent(work: Callable[[], object]) -> float:
    """Return the seconds of the processor that some work takes in this process."""
    before = time.process_time()
    work()
    return time.process_time() - before


def copies_of(store: Store) -> dict[str, str]:
    """Make a copy of the span table for each change; return their tables by what was changed."""
    (row,) = store.query("SHOW CREATE TABLE otel_traces")
    made = row["statement"]
    computed = store.query(
        "SELECT name, type FROM system.columns WHERE database = currentDatabase() "
        "AND table = 'otel_traces' AND default_kind = 'MATERIALIZED'"
    )
    empty = {
        f"no {row['name']}": f"MODIFY COLUMN {row['name']} {row['type']} "
        f"MATERIALIZED defaultValueOfTypeName('{row['type']}')"
        for row in computed
    }
    altered = {"no computed column": ", ".join(empty.values()), **empty}
    tables = {}
    for number, name in enumerate(("the whole table", *altered, *CHANGES)):
        old, new = CHANGES.get(name, ("", ""))
        assert old in made, f"the table has no {old}"
        tables[name] = f"copy_{number}"
        changed = made.replace(old, new) if old else made
        store.command(changed.replace(".otel_traces", f".copy_{number}", 1))
        if name in altered:
            store.command(f"ALTER TABLE copy_{number} {altered[name]}")
    return tables


def main() -> None:
    """Run the benchmark."""
    shape, rounds = agent_shape(), range(ROUNDS)
    us = 1e6 / (REQUESTS * shape.spans)
    folder = tempfile.TemporaryDirectory()
    with folder, Store.open(f"chdb://{folder.name}", memory_limit=MEMORY) as store:
        migrate(store)
        store.command("SYSTEM STOP MERGES otel_traces")
        given = f"SELECT toUInt32({{}}) AS Round, {COLUMNS} FROM otel_traces"
        store.command(f"CREATE TABLE given ENGINE = Memory AS {given.format(0)}")
        writer, whole = SpanWriter(store), []
        for number in rounds:
            bodies = [shape.body(number * REQUESTS + place) for place in range(REQUESTS)]
            whole.append(spent(lambda: writer.write(bodies, token=str(number))))  # noqa: B023
            store.command(f"INSERT INTO given {given.format(number)}")
            store.command("TRUNCATE TABLE otel_traces")

        def insert(table: str, number: int, stage: str = "") -> float:
            rows = f"SELECT {COLUMNS} FROM given WHERE Round = {number}"
            sql = f"INSERT INTO {table} ({COLUMNS}) {rows}"
            once = deduplication(f"{table} {number} {stage}")
            return spent(lambda: store.command(sql, settings=once))

        tables = copies_of(store)
        found: dict[str, list[float]] = {name: [] for name in tables}
        for number in rounds:
            for name in sorted(tables, reverse=bool(number % 2)):
                found[name].append(insert(tables[name], number))
        print(f"requests, parsed and stored: {statistics.median(whole) * us:.1f} us of CPU a span")
        for stage, view in VIEWS.items():
            if view:
                store.command(f"DROP VIEW {view}")
            times = [insert("otel_traces", number, stage) for number in rounds]
            print(f"rows, {stage}: {statistics.median(times) * us:.1f}")
        print("| | insert, us | merge, us | bytes |")
        for name, table in tables.items():
            merge = spent(lambda: store.command(f"OPTIMIZE TABLE {table} FINAL"))  # noqa: B023
            (row,) = store.query(
                "SELECT sum(bytes_on_disk) / sum(rows) AS bytes, sum(rows) AS spans FROM system.parts "
                f"WHERE active AND database = currentDatabase() AND table = '{table}'"
            )
            cost = statistics.median(found[name]) * us, merge * 1e6 / row["spans"], row["bytes"]
            print(f"| {name} | {cost[0]:.1f} | {cost[1]:.1f} | {cost[2]:.0f} |")


if __name__ == "__main__":
    main()
