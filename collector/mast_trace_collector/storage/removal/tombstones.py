"""Tombstones: the ids of erased runs in ``mast_tombstones``, under which nothing is kept.

Writers of rows about runs store them with `insert_living`, which refuses those of erased runs. Rows that come by
another way, or in the same moment, are found and deleted by `mast_trace_collector.storage.removal.sweep`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any, Final, TypeVar

from mast_trace.exceptions import RunErased
from mast_trace_collector.storage.removal.run_tables import TOMBSTONES
from mast_trace_collector.storage.store import WRITE_SETTINGS, Store

logger = logging.getLogger(__name__)

KEYS: Final = (
    "SELECT run.1 AS Project, run.2 AS TraceId "
    "FROM (SELECT arrayJoin(arrayZip({projects:Array(String)}, {ids:Array(String)})) AS run)"
)
"""The SELECT of runs that are given as the parameters of `keys_params`."""
SINCE: Final = (
    f"SELECT Project, TraceId FROM {TOMBSTONES} "  # noqa: S608
    "WHERE ChangedAt >= fromUnixTimestamp64Micro({stamp:Int64})"
)
"""The SELECT of runs whose deletion was begun at a stamp or later."""
AT_ONCE: Final = 500
"""Most runs that a statement names: they travel in the URL of a request."""

_AT: Final = "fromUnixTimestamp64Micro({stamp:Int64})"
_GIVEN: Final = (
    "SELECT arrayJoin(arrayZip({projects:Array(String)}, {ids:Array(String)}, "
    "{erased:Array(Int64)}, {arrived:Array(UInt64)})) AS run"
)
_PATIENCE: Final = 30
"""Seconds after which a deletion without an end counts as killed; several at a time do no harm."""
_ROWS: Final = f"""
SELECT toString(Project) AS OfProject, TraceId, toUnixTimestamp64Milli(min(ErasedAt)) AS Erased,
    sum(Arrived) AS Rows,
    max(ChangedAt) > greatest(max(DoneAt), now64(6) - toIntervalSecond({_PATIENCE})) AS GoingOn
FROM {TOMBSTONES} WHERE {{which}}
GROUP BY OfProject, TraceId ORDER BY Erased, TraceId"""  # noqa: S608

_UNFINISHED: Final = f"""
SELECT toUnixTimestamp64Micro(Begun) AS stamp, Begun > now64(6) - toIntervalSecond({_PATIENCE}) AS going_on
FROM (SELECT max(ChangedAt) AS Begun FROM {TOMBSTONES} GROUP BY Project, TraceId HAVING Begun > max(DoneAt))
GROUP BY Begun ORDER BY Begun"""  # noqa: S608

T = TypeVar("T")
Row = Mapping[str, Any]
Key = tuple[str, str]
"""The project and the trace id of a run."""


@dataclass(frozen=True)
class Tombstone:
    """An erased run.

    Attributes:
        project: of the run.
        trace_id: of the run.
        erased_at: time of its first erasure, in UTC.
        arrived: rows about it that came later and were deleted.
        going_on: whether its rows are being deleted now; a deletion that was killed is not.
    """

    project: str
    trace_id: str
    erased_at: datetime
    arrived: int = 0
    going_on: bool = False

    @property
    def key(self) -> Key:
        """Its run."""
        return self.project, self.trace_id

    def __str__(self) -> str:
        return f"run {self.trace_id} was erased at {self.erased_at:%Y-%m-%d %H:%M:%S} UTC"


def new_stamp(store: Store) -> int:
    """Return a time for `bury`, in microseconds since the epoch: later than all others in the database."""
    (row,) = store.query(
        "SELECT greatest(toUnixTimestamp64Micro(now64(6)), "  # noqa: S608
        f"toUnixTimestamp64Micro(max(ChangedAt)) + 1) AS stamp FROM {TOMBSTONES}"
    )
    return int(row["stamp"])


def bury(store: Store, stamp: int, runs: str, params: Mapping[str, Any]) -> None:
    """Write tombstones; what is deleted afterwards can come back no more.

    Args:
        store: the database.
        stamp: a `new_stamp`, by which `SINCE` finds them again.
        runs: a SELECT of ``Project`` and ``TraceId``.
        params: of ``runs``.
    """
    _write(store, f"Project, TraceId, now64(3), {_AT}, 0 FROM ({runs})", {**params, "stamp": stamp})


def put_back(store: Store, stamp: int, tombstones: Sequence[Tombstone]) -> None:
    """Write tombstones of runs that were erased before; times and counts are added to the known ones."""
    for part in parts_of(tombstones):
        given = {
            **keys_params([each.key for each in part]),
            "erased": [int(each.erased_at.timestamp() * 1000) for each in part],
            "arrived": [each.arrived for each in part],
            "stamp": stamp,
        }
        _write(
            store,
            f"run.1, run.2, fromUnixTimestamp64Milli(run.3), {_AT}, run.4 FROM ({_GIVEN})",
            given,
        )


def mark_done(store: Store, stamp: int) -> None:
    """Record that a deletion was verified; one that began later is not meant."""
    store.command(
        f"INSERT INTO {TOMBSTONES} (Project, TraceId, ErasedAt, ChangedAt, DoneAt) "  # noqa: S608
        f"SELECT Project, TraceId, min(ErasedAt), {_AT}, {_AT} FROM {TOMBSTONES} "
        f"WHERE ChangedAt = {_AT} GROUP BY Project, TraceId",
        {"stamp": stamp},
        settings=WRITE_SETTINGS,
    )


def tombstones_of(store: Store, runs: Iterable[Key]) -> dict[Key, Tombstone]:
    """Return the tombstones of those of some runs that were erased.

    Raises:
        StorageError: the database does not answer.
    """
    which = _ROWS.replace("{which}", f"(Project, TraceId) IN ({KEYS})")
    found: dict[Key, Tombstone] = {}
    for part in parts_of(sorted(set(runs))):
        found.update((each.key, each) for each in _read(store, which, keys_params(part)))
    return found


def unfinished(store: Store) -> list[tuple[int, bool]]:
    """Return the stamps of deletions that have no end yet, and whether each is going on; else it was killed.

    Raises:
        StorageError: the database does not answer.
    """
    return [(int(row["stamp"]), bool(row["going_on"])) for row in store.query(_UNFINISHED)]


def find_tombstones(store: Store, prefix: str = "", project: str | None = None) -> list[Tombstone]:
    """Return the tombstones of runs whose ids begin with a text, by the time of their erasure; all by default.

    Raises:
        StorageError: the database does not answer.
    """
    which = (
        "startsWith(TraceId, {prefix:String}) "
        "AND ({project:Nullable(String)} IS NULL OR Project = {project:Nullable(String)})"
    )
    given = {"prefix": prefix.strip().lower(), "project": project}
    return _read(store, _ROWS.replace("{which}", which), given)


def insert_living(
    store: Store, table: str, rows: Sequence[Row], *, token: str | None = None
) -> list[Row]:
    """Insert rows about runs, without those about erased ones; return the inserted rows.

    Raises:
        StorageError: the database does not accept them.
    """
    erased = tombstones_of(store, map(_key, rows))
    living = [row for row in rows if _key(row) not in erased]
    if erased:
        logger.info(
            "%d rows about erased runs are not stored in %s", len(rows) - len(living), table
        )
    store.insert(table, living, token=token)
    return living


def insert_of_run(store: Store, table: str, row: Row) -> None:
    """Insert a row about a run.

    Raises:
        RunErased: the run was erased.
        StorageError: the database does not accept the row.
    """
    if not insert_living(store, table, [row]):
        refuse_erased(store, [_key(row)])


def refuse_erased(store: Store, runs: Iterable[Key]) -> None:
    """Raise an error if one of some runs was erased.

    Raises:
        RunErased: it was.
        StorageError: the database does not answer.
    """
    for erased in tombstones_of(store, runs).values():
        raise RunErased(f"{erased}: nothing about it is stored any more")


def keys_params(runs: Sequence[Key]) -> dict[str, Any]:
    """Return the parameters of `KEYS`."""
    return {"projects": [project for project, _ in runs], "ids": [run for _, run in runs]}


def parts_of(items: Sequence[T]) -> Iterator[list[T]]:
    """Divide things that statements name into parts of `AT_ONCE`."""
    return (list(items[at : at + AT_ONCE]) for at in range(0, len(items), AT_ONCE))


def _key(row: Row) -> Key:
    return row["Project"], row["TraceId"]


def _write(store: Store, source: str, params: Mapping[str, Any]) -> None:
    store.command(
        f"INSERT INTO {TOMBSTONES} (Project, TraceId, ErasedAt, ChangedAt, Arrived) SELECT DISTINCT {source}",
        params,
        settings=WRITE_SETTINGS,
    )


def _read(store: Store, sql: str, params: Mapping[str, Any]) -> list[Tombstone]:
    return [
        Tombstone(
            project=row["OfProject"],
            trace_id=row["TraceId"],
            erased_at=datetime.fromtimestamp(row["Erased"] / 1000, timezone.utc),
            arrived=int(row["Rows"]),
            going_on=bool(row["GoingOn"]),
        )
        for row in store.query(sql, params)
    ]
