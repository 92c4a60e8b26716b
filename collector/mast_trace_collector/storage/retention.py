"""Forgets: runs by id, runs of a person, everything before a time, the oldest days beyond a size.

Rows are rewritten away, not only hidden. The files that held them are deleted by ClickHouse a few
minutes later (``old_parts_lifetime``), and backups are the operator's.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from mast_trace_collector.storage.expressions import literal

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from mast_trace_collector.storage.store import Store

TIMES: Mapping[str, str] = {
    "otel_traces": "toDateTime(Timestamp)",
    "otel_traces_trace_id_ts": "toDateTime(Start)",
    "mast_run_states": "Day",
    "mast_verdicts": "toDateTime(RunEnd)",
    "mast_judge_calls": "toDateTime(StartedAt)",
}
"""The time of each table's rows; labels that people gave have none: they are kept."""

_TABLES = (*TIMES, "mast_human_labels")
_WITHOUT_PROJECT = "otel_traces_trace_id_ts"
_BY_DAY = ("otel_traces", "otel_traces_trace_id_ts", "mast_run_states")
_ENDED_BEFORE = (
    "(Project, TraceId) IN (SELECT Project, TraceId FROM mast_run_states "
    "GROUP BY Project, TraceId HAVING max(End) < {time:DateTime})"
)
_SETTINGS = {"mutations_sync": 2, "allow_nondeterministic_mutations": 1}
_DISTRIBUTED = re.compile(r"Distributed\('([^']+)', '[^']+', '([^']+)'")


def erase_runs(store: Store, trace_ids: Sequence[str], *, project: str | None = None) -> int:
    """Erase runs with everything that was said of them; return how many there were.

    Args:
        store: where they are.
        trace_ids: which.
        project: erase them in this project only.
    """
    if not trace_ids:
        return 0
    params: dict[str, Any] = {"ids": list(trace_ids), "project": project}
    chosen = "TraceId IN {ids:Array(String)}"
    ours = f"{chosen} AND ({{project:Nullable(String)}} IS NULL OR Project = {{project:Nullable(String)}})"
    (found,) = store.query(
        f"SELECT uniqExact(Project, TraceId) AS n FROM mast_run_states WHERE {ours}",  # noqa: S608
        params,
    )
    for table in _TABLES:
        if table != _WITHOUT_PROJECT:
            _delete(store, table, ours, params)
    # The lookup table knows no project: a trace stays in it while any project has it.
    rest = store.query(
        f"SELECT DISTINCT TraceId FROM mast_run_states WHERE {chosen}",  # noqa: S608
        params,
    )
    kept = {row["TraceId"] for row in rest}
    gone = [trace_id for trace_id in trace_ids if trace_id not in kept]
    if gone:
        _delete(store, _WITHOUT_PROJECT, chosen, {"ids": gone})
    return int(found["n"])


def runs_with(store: Store, attribute: str, value: str, *, project: str | None = None) -> list[str]:
    """Return the ids of the runs of which a span or its resource carries ``attribute`` = ``value``.

    With ``enduser.id`` and `erase_runs`, this erases what a person's runs left.
    """
    rows = store.query(
        "SELECT DISTINCT TraceId FROM otel_traces "
        "WHERE (SpanAttributes[{attribute:String}] = {value:String} "
        "OR ResourceAttributes[{attribute:String}] = {value:String}) AND TraceId != '' "
        "AND ({project:Nullable(String)} IS NULL OR Project = {project:Nullable(String)}) "
        "ORDER BY TraceId",
        {"attribute": attribute, "value": value, "project": project},
    )
    return [row["TraceId"] for row in rows]


def erase_before(store: Store, time: datetime) -> None:
    """Erase spans, runs, verdicts and calls of models from before ``time``."""
    params = {"time": time}
    for table, column in TIMES.items():
        if table != "mast_run_states":
            _delete(store, table, f"{column} < {{time:DateTime}}", params)
    # A run's state has the day on which it was written, which for imported runs is a late one.
    _delete(store, "mast_run_states", _ENDED_BEFORE, params)


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
            name, on_cluster = _stored(store, table)
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
        name, on_cluster = _stored(store, table)
        if days:
            change = f"MODIFY TTL {column} + toIntervalDay({days})"
        elif _has_ttl(store, name):
            change = "REMOVE TTL"
        else:
            continue
        store.command(f"ALTER TABLE {name} {on_cluster} {change}")


def _delete(store: Store, table: str, condition: str, params: Mapping[str, Any]) -> None:
    name, on_cluster = _stored(store, table)
    store.command(
        f"ALTER TABLE {name} {on_cluster} DELETE WHERE {condition}", params, settings=_SETTINGS
    )


def _stored(store: Store, table: str) -> tuple[str, str]:
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
