"""Forgets what is old: whole days, by age (TTL) or from the oldest on until a size is reached.

What must go for good, whatever its age, is the matter of `erasure`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from mast_trace_collector.storage.expressions import literal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mast_trace_collector.storage.store import Store

TIMES: Mapping[str, str] = {
    "otel_traces": "toDateTime(Timestamp)",
    "otel_traces_trace_id_ts": "toDateTime(Start)",
    "mast_run_states": "Day",
    "mast_verdicts": "toDateTime(RunEnd)",
    "mast_findings": "toDateTime(RunEnd)",
    "mast_judge_calls": "toDateTime(StartedAt)",
    "otel_logs": "TimestampTime",
}
"""The time of each table's rows; labels that people gave have none: they are kept."""

_BY_DAY = ("otel_traces", "otel_traces_trace_id_ts", "mast_run_states", "otel_logs")
_DISTRIBUTED = re.compile(r"Distributed\('([^']+)', '[^']+', '([^']+)'")


def shrink_to(store: Store, max_bytes: int) -> list[str]:
    """Drop the oldest days of spans until all tables take at most ``max_bytes``; return the days.

    The newest day is never dropped. Verdicts and labels stay.
    """
    days = store.query(
        "SELECT partition, sum(bytes_on_disk) AS bytes FROM system.parts "
        "WHERE database = currentDatabase() AND active AND table LIKE 'otel_traces%' "
        "GROUP BY partition ORDER BY partition"
    )
    (total,) = store.query(
        "SELECT sum(bytes_on_disk) AS bytes FROM system.parts "
        "WHERE database = currentDatabase() AND active"
    )
    excess = int(total["bytes"]) - max_bytes
    dropped = []
    for day in days[:-1]:
        if excess <= 0:
            break
        for table in _BY_DAY:
            name, on_cluster = stored_table(store, table)
            store.command(
                f"ALTER TABLE {name} {on_cluster} DROP PARTITION {literal(day['partition'])}"
            )
        excess -= int(day["bytes"])
        dropped.append(str(day["partition"]))
    return dropped


def set_ttl(store: Store, days: int) -> None:
    """Keep rows for ``days`` days from now on; 0 keeps them for ever.

    ClickHouse drops a part when all of its rows are older, so a day goes as a whole.
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
    found = _DISTRIBUTED.match(rows[0]["engine_full"]) if rows else None
    return (found[2], f"ON CLUSTER {found[1]}") if found else (table, "")


def _has_ttl(store: Store, table: str) -> bool:
    (row,) = store.query(
        "SELECT position(engine_full, ' TTL ') > 0 AS has FROM system.tables "
        "WHERE database = currentDatabase() AND name = {table:String}",
        {"table": table},
    )
    return bool(row["has"])
