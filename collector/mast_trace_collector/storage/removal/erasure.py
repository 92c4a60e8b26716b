"""Permanent erasure: of runs, of a project, of everything before a time.

An erasure writes tombstones first (`tombstones`), then removes every row about a run from every table that the
database's catalogue knows: its spans, its state, the verdicts and the answers of the judge's model that quote it, its
replays and their conclusion, the labels that people gave it, the evaluations that were sent, its part in patterns, and
the lessons and the sentences on patterns that quote it. Then it looks whether anything came meanwhile.
Parts are rewritten without the rows, which are not only hidden. ClickHouse deletes the old files a
few minutes later (``old_parts_lifetime``); backups and dead letters are up to the operator.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from mast_trace.exceptions import StorageError
from mast_trace_collector.storage.removal.retention import TIMES
from mast_trace_collector.storage.removal.run_tables import NAMES, TOMBSTONES, RunTable, run_tables
from mast_trace_collector.storage.removal.tombstones import (
    KEYS,
    SINCE,
    Key,
    bury,
    keys_params,
    mark_done,
    new_stamp,
    parts_of,
)

if TYPE_CHECKING:
    from mast_trace_collector.storage.store import Store

_LOOKUP: Final = "otel_traces_trace_id_ts"
_STATES: Final = "mast_run_states"
_LABELS: Final = "mast_human_labels"
_PRICES: Final = "mast_prices"
"""A table that is no data about runs: an erasure of a project leaves it."""
_SETTINGS: Final = {"mutations_sync": 2, "allow_nondeterministic_mutations": 1}
_TRIES: Final = 6
_PAUSE: Final = 0.1
"""Seconds before what came meanwhile is deleted, at first: what is being stored now should be there by then."""
_OURS: Final = "({project:Nullable(String)} IS NULL OR Project = {project:Nullable(String)})"
_NOBODY_ELSES: Final = f"TraceId NOT IN (SELECT TraceId FROM {_STATES} WHERE NOT {_OURS})"  # noqa: S608


@dataclass(frozen=True)
class Erasure:
    """The scope of an erasure.

    Attributes:
        runs: a SELECT of ``Project`` and ``TraceId`` of the runs of which nothing is to be left, with ``{name:Type}``
            for parameters.
        params: their values.
        beside: table -> condition on further rows, which belong to none of these runs.
    """

    runs: str
    params: Mapping[str, Any]
    beside: Mapping[str, str] = field(default_factory=dict)

    def count(self, store: Store) -> int:
        """Count the runs of which nothing would be left."""
        (row,) = store.query(
            f"SELECT uniqExact(Project, TraceId) AS n FROM {_STATES} "  # noqa: S608
            f"WHERE (Project, TraceId) GLOBAL IN ({self.runs})",
            self.params,
        )
        return int(row["n"])

    def rows(self, store: Store) -> dict[str, int]:
        """Count the rows of each table that would be erased."""
        counted = {}
        for table in run_tables(store):
            conditions = (table.about(self.runs), self.beside.get(table.name, ""))
            condition = " OR ".join(f"({each})" for each in conditions if each)
            counted[table.name] = _count(store, table, condition or "0", self.params)
        return counted


def erase(store: Store, *erasures: Erasure) -> None:
    """Erase, and return when nothing is left. Safe to run again after an interruption.

    Raises:
        StorageError: the database refused, or rows about the runs keep coming in; what was deleted is gone.
    """
    stamp = new_stamp(store)
    for each in erasures:
        bury(store, stamp, each.runs, each.params)
    for each in erasures:
        for table in run_tables(store):
            if condition := each.beside.get(table.name):
                _delete(store, table, condition, each.params)
    delete_since(store, stamp)


def delete_since(store: Store, stamp: int) -> Counter[str]:
    """Delete all rows about the runs under tombstones of a stamp or later; return their number by table.

    Raises:
        StorageError: the database refused, or rows keep coming in.
    """
    given = {"stamp": stamp}
    deleted: Counter[str] = Counter()
    left: dict[str, int] = {}
    for number in range(_TRIES):
        left = {}
        for table in run_tables(store):
            condition = table.about(SINCE)
            rows = _count(store, table, condition, given) if condition else 0
            if rows:
                _delete(store, table, condition, given)
                left[table.name] = rows
        if not left:
            mark_done(store, stamp)
            return deleted
        deleted.update(left)
        time.sleep(_PAUSE * 2**number)
    told = ", ".join(f"{rows} in {table}" for table, rows in left.items())
    raise StorageError(
        f"rows about erased runs keep coming in ({told}): end the programs that send them, then erase again; "
        "`up`, `collect` and `judge work` go on deleting what comes"
    )


def of_runs(store: Store, trace_ids: Sequence[str], *, project: str | None = None) -> list[Erasure]:
    """Erase runs by their ids, in one project or wherever they are or were."""
    return of_keys(keys_of(store, trace_ids, project))


def of_keys(runs: Sequence[Key]) -> list[Erasure]:
    """Erase runs by their projects and ids."""
    return [Erasure(KEYS, keys_params(part)) for part in parts_of(runs)]


def keys_of(store: Store, trace_ids: Sequence[str], project: str | None = None) -> list[Key]:
    """Return the runs with some ids, of one project or of all, from every table that names one, erased ones included."""
    tables = [each.name for each in run_tables(store) if {"Project", "TraceId"} <= each.columns]
    found: set[Key] = set()
    for part in parts_of(sorted(set(trace_ids))):
        for table in (*tables, TOMBSTONES):
            rows = store.query(
                f"SELECT DISTINCT toString(Project) AS OfProject, TraceId FROM `{table}` "  # noqa: S608
                f"WHERE TraceId IN {{ids:Array(String)}} AND {_OURS}",
                {"ids": part, "project": project},
            )
            found.update((row["OfProject"], row["TraceId"]) for row in rows)
    return sorted(found)


def of_project(store: Store, project: str) -> Erasure:
    """Erase all data of a project; runs that begin meanwhile stay whole."""
    runs = f"SELECT Project, TraceId FROM {_STATES} WHERE Project = {{project:String}}"  # noqa: S608
    ours = "Project = {project:String}"
    of_no_run = f"{ours} AND TraceId NOT IN (SELECT TraceId FROM ({runs}))"  # noqa: S608
    beside = {
        table.name: of_no_run if "TraceId" in table.columns else ours
        for table in run_tables(store)
        if "Project" in table.columns and table.name != _PRICES
    }
    return Erasure(runs, {"project": project}, beside)


def before(time: datetime, *, project: str | None = None) -> Erasure:
    """Erase spans from before a time, and all rows about the runs that ended before it."""
    runs = (
        f"SELECT Project, TraceId FROM {_STATES} WHERE {_OURS} "  # noqa: S608
        "GROUP BY Project, TraceId HAVING max(End) < {time:DateTime}"
    )
    early = {table: f"{column} < {{time:DateTime}}" for table, column in TIMES.items()}
    # A run's state has the day on which it was written, which is late for imported runs.
    del early[_STATES]
    beside = {table: f"{_OURS} AND {condition}" for table, condition in early.items()}
    beside[_LABELS] = f"{_OURS} AND toDateTime(LabelledAt) < {{time:DateTime}}"
    # Its rows have the beginning of a trace; the project, if given, comes from the run's state.
    beside[_LOOKUP] = early[_LOOKUP] if project is None else f"{early[_LOOKUP]} AND {_NOBODY_ELSES}"
    return Erasure(runs, {"time": time, "project": project}, beside)


def erase_names(store: Store, trace_ids: Sequence[str], *, project: str) -> None:
    """Erase only the sentences on patterns that a model made from one of some runs of a project.

    Raises:
        StorageError: the database refused.
    """
    condition = "Project = {project:String} AND hasAny(TraceIds, {ids:Array(String)})"
    (names,) = (table for table in run_tables(store) if table.name == NAMES)
    for part in parts_of(trace_ids):
        _delete(store, names, condition, {"ids": part, "project": project})


def _count(store: Store, table: RunTable, condition: str, params: Mapping[str, Any]) -> int:
    (row,) = store.query(f"SELECT count() AS n FROM `{table.name}` WHERE {condition}", params)  # noqa: S608
    return int(row["n"])


def _delete(store: Store, table: RunTable, condition: str, params: Mapping[str, Any]) -> None:
    store.command(
        f"ALTER TABLE `{table.stored}` {table.on_cluster} DELETE WHERE {condition}",
        params,
        settings=_SETTINGS,
    )
