"""Retention: drops whole days, by age (TTL) or from the oldest on until a size is reached.

Permanent deletion, whatever the age, is in `erasure`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

from mast_trace_collector.storage.removal.run_tables import DISTRIBUTED
from mast_trace_collector.storage.span_sql import literal

if TYPE_CHECKING:
    from mast_trace_collector.storage.store import Store

TIMES: Mapping[str, str] = {
    "otel_traces": "toDateTime(Timestamp)",
    "otel_traces_trace_id_ts": "toDateTime(Start)",
    "mast_run_states": "Day",
    "mast_verdicts": "toDateTime(RunEnd)",
    "mast_findings": "toDateTime(RunEnd)",
    "mast_run_facts": "toDateTime(RunEnd)",
    "mast_judge_calls": "toDateTime(StartedAt)",
    "mast_replay_plans": "toDateTime(RunEnd)",
    "mast_replays": "toDateTime(RunEnd)",
    "mast_confirmations": "toDateTime(RunEnd)",
    "mast_injections": "toDateTime(RunEnd)",
    "mast_pattern_runs": "toDateTime(RunEnd)",
    "mast_pattern_names": "toDateTime(RunEnd)",
    "mast_experiment_runs": "toDateTime(Start)",
    "mast_lessons": "toDateTime(RunEnd)",
    "mast_left_out": "toDateTime(RunEnd)",
    "otel_logs": "TimestampTime",
}
"""The time column of each table's rows; labels that people gave, and plans and looks
of experiments, have none: they are kept."""

_BY_DAY = ("otel_traces", "otel_traces_trace_id_ts", "mast_run_states", "otel_logs")


@dataclass(frozen=True)
class Forgotten:
    """The rows that a limit drops.

    Attributes:
        days: those dropped as a whole, oldest first; empty where rows expire by their age.
        runs: number of runs of which only labels and verdicts are left.
        rows: number of dropped rows by table.
        bytes: dropped bytes on disk; by age an estimate, from each table's share of rows.
        is_more: what is left is more than the limit, as the newest day stays.
    """

    days: tuple[str, ...]
    runs: int
    rows: Mapping[str, int]
    bytes: int
    is_more: bool = False


def beyond_size(store: Store, max_bytes: int) -> Forgotten:
    """Return the rows that `shrink_to` would drop now."""
    parts = _parts_by_day(store)
    (total,) = store.query(
        "SELECT sum(bytes_on_disk) AS bytes FROM system.parts "
        "WHERE database = currentDatabase() AND active"
    )
    excess = int(total["bytes"]) - max_bytes
    days: list[str] = []
    for day in _droppable(parts):
        if excess <= 0:
            break
        days.append(day)
        excess -= sum(size for _, size in parts[day].values())
    rows = {table: sum(parts[day].get(table, (0, 0))[0] for day in days) for table in _BY_DAY}
    return Forgotten(
        days=tuple(days),
        runs=_runs_left_out(store, "max(Day NOT IN {days:Array(Date)})", {"days": days}),
        rows={table: number for table, number in rows.items() if number},
        bytes=sum(size for day in days for _, size in parts[day].values()),
        is_more=excess > 0,
    )


def shrink_to(store: Store, max_bytes: int) -> list[str]:
    """Drop the oldest days of spans and logs until all tables take at most ``max_bytes``.

    It returns the dropped days. The newest day is never dropped. Verdicts and labels stay.
    """
    days = beyond_size(store, max_bytes).days
    for day in days:
        for table in _BY_DAY:
            name, on_cluster = stored_table(store, table)
            store.command(f"ALTER TABLE {name} {on_cluster} DROP PARTITION {literal(day)}")
    return list(days)


def _droppable(parts: Mapping[str, Mapping[str, tuple[int, int]]]) -> list[str]:
    """Return the days before the newest one with spans, oldest first.

    A run's state has the day on which it was written, which differs for imported runs. Days of a sender's clock that
    is ahead do not make today's an old one.
    """
    tomorrow = (datetime.now(timezone.utc) + timedelta(days=1)).date().isoformat()
    known_days = sorted(day for day, tables in parts.items() if tables.keys() - {"mast_run_states"})
    with_spans = [day for day in known_days if "otel_traces" in parts[day]] or known_days[-1:]
    newest = max((day for day in with_spans if day <= tomorrow), default="".join(with_spans[-1:]))
    return [day for day in known_days if day < newest]


def _parts_by_day(store: Store) -> dict[str, dict[str, tuple[int, int]]]:
    """Return rows and bytes of each table with retention by days, by day."""
    names = {stored_table(store, table)[0]: table for table in _BY_DAY}
    found: dict[str, dict[str, tuple[int, int]]] = {}
    for row in store.query(
        "SELECT table, partition, sum(rows) AS rows, sum(bytes_on_disk) AS bytes FROM system.parts "
        "WHERE database = currentDatabase() AND active AND table IN {tables:Array(String)} "
        "GROUP BY table, partition",
        {"tables": list(names)},
    ):
        day = found.setdefault(str(row["partition"]), {})
        day[names[row["table"]]] = (int(row["rows"]), int(row["bytes"]))
    return found


def beyond_age(store: Store, days: int) -> Forgotten:
    """Return the rows that `set_ttl` would have dropped by now; none for 0 days."""
    if not days:
        return Forgotten((), 0, {}, 0)
    rows, size = {}, 0
    for table, column in TIMES.items():
        old = f"{column} + toIntervalDay({days:d}) <= now()"
        (row,) = store.query(f"SELECT countIf({old}) AS old, count() AS n FROM {table}")  # noqa: S608
        if row["old"]:
            rows[table] = int(row["old"])
            size += _bytes_of(store, table) * row["old"] // row["n"]
    young = f"max(Day + toIntervalDay({days:d}) > now())"
    return Forgotten((), _runs_left_out(store, young, {}), rows, int(size))


def _bytes_of(store: Store, table: str) -> int:
    (row,) = store.query(
        "SELECT sum(bytes_on_disk) AS bytes FROM system.parts "
        "WHERE database = currentDatabase() AND active AND table = {table:String}",
        {"table": stored_table(store, table)[0]},
    )
    return int(row["bytes"])


def _runs_left_out(store: Store, kept: str, params: Mapping[str, Any]) -> int:
    """Count the runs none of whose states meets a condition."""
    (row,) = store.query(
        "SELECT count() AS n FROM (SELECT 1 FROM mast_run_states "  # noqa: S608
        f"GROUP BY Project, TraceId HAVING NOT {kept})",
        params,
    )
    return int(row["n"])


def set_ttl(store: Store, days: int) -> None:
    """Keep rows for ``days`` days from now on; 0 keeps them for ever.

    ClickHouse drops a part when all of its rows are older, so a day is dropped as a whole.
    """
    if days < 0:
        raise ValueError("the days to keep are a number, or 0 for all")
    for table, column in TIMES.items():
        name, on_cluster = stored_table(store, table)
        if days:
            change = f"MODIFY TTL {column} + toIntervalDay({days})"
        elif _has_ttl(store, name):
            change = "REMOVE TTL"
        else:
            continue
        store.command(f"ALTER TABLE {name} {on_cluster} {change}")


def stored_table(store: Store, table: str) -> tuple[str, str]:
    """Return the table that holds the rows, and ON CLUSTER where it is on every node of one."""
    rows = store.query(
        "SELECT engine_full FROM system.tables "
        "WHERE database = currentDatabase() AND name = {table:String}",
        {"table": table},
    )
    found = DISTRIBUTED.match(rows[0]["engine_full"]) if rows else None
    return (found[2], f"ON CLUSTER {found[1]}") if found else (table, "")


def _has_ttl(store: Store, table: str) -> bool:
    (row,) = store.query(
        "SELECT position(engine_full, ' TTL ') > 0 AS has FROM system.tables "
        "WHERE database = currentDatabase() AND name = {table:String}",
        {"table": table},
    )
    return bool(row["has"])
