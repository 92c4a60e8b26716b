"""Repairs the totals of runs that were stored before each span's id was kept whole.

The spans are read again, run by run in the order in which they are stored, and the states that the
present view would write are added to the runs' states. States are sets: the repair may be done
twice, by several processes at once, and while spans arrive. Each run is marked, as whole or as one
whose spans are gone, which keeps its former totals; so an interrupted repair continues where it
ended.
"""

from __future__ import annotations

import logging
import secrets
import time
from dataclasses import asdict, dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

from mast_trace_collector.storage.schema_templates import states_of_stored_spans
from mast_trace_collector.storage.store import WRITE_SETTINGS

if TYPE_CHECKING:
    import threading
    from collections.abc import Iterator
    from datetime import datetime

    from mast_trace_collector.storage.schema_templates import SchemaOptions
    from mast_trace_collector.storage.store import Store

SPANS_AT_ONCE = 250_000
"""Approximate number of spans in a piece: a statement takes some 100 bytes for each."""
_ROWS_AT_ONCE = 5_000

RANGE = "Project = {project:String} AND TraceId >= {first:String} AND TraceId <= {last:String}"
"""A condition on the runs of a piece."""
_HOW_MANY = "SELECT sum(length(Spans)) AS Spans FROM mast_run_states WHERE Old = 1"
_PROJECTS = "SELECT DISTINCT toString(Project) AS Project FROM mast_run_states ORDER BY Project"
# From one trace on, in the order of the table: a look-up of a piece does not scan all runs.
_NEXT = """
SELECT TraceId, length(Spans) AS Length FROM mast_run_states
WHERE Project = {project:String} AND TraceId > {after:String}
  AND ({end:String} = '' OR TraceId <= {end:String}) AND Old = 1
ORDER BY TraceId
LIMIT {rows:UInt32}
"""
# Written with the day of the run's states: queries for old runs must not take it for a new one.
_REMEMBER = f"""
INSERT INTO mast_run_states (Project, TraceId, Day, LastSeen, OldSpans, OldErrors, OldInputTokens, OldOutputTokens)
SELECT r.Project, r.TraceId, old.Day, toDateTime64(0, 3), r.Spans, r.Errors, r.InputTokens, r.OutputTokens
FROM (SELECT * FROM mast_runs WHERE {RANGE}) AS r
INNER JOIN
(
    SELECT TraceId, max(Day) AS Day FROM mast_run_states WHERE {RANGE} AND Old = 1 GROUP BY TraceId
) AS old ON old.TraceId = r.TraceId
"""  # noqa: S608  # made of constants

logger = logging.getLogger(__name__)
_SECONDS_BETWEEN_REPORTS = 10.0
# By the states: the view of a version before has no word for it.
_ARE_ANY_LEFT = f"""
SELECT count() AS Runs FROM
(
    SELECT TraceId FROM mast_run_states WHERE {RANGE} GROUP BY Project, TraceId HAVING max(Old) = 1
)
"""  # noqa: S608  # made of constants
_REPAIR = f"""
INSERT INTO mast_run_states ({{columns}})
SELECT {{columns}} FROM
(
    SELECT stored.* EXCEPT Day, old.OldDay AS Day
    FROM ({{states}}) AS stored
    INNER JOIN
    (
        SELECT TraceId, max(Day) AS OldDay FROM mast_run_states
        WHERE {RANGE} AND Old != 0
        GROUP BY TraceId
    ) AS old ON old.TraceId = stored.TraceId
)
"""  # noqa: S608  # made of constants
# Each span has left its mark, which holds half of the hash of its id. The ids are looked up among
# them.
_STATES = """
SELECT s.Project AS Project, s.TraceId AS TraceId, maxIf(s.Day, s.Old != 0) AS OldDay, max(s.Old) AS MaxOld,
    length(arrayCompact(mark -> bitShiftRight(mark, 32), arraySort(groupArrayArray(s.Spans)))) AS Marks,
    length(arrayCompact(arraySort(arrayMap(
        id -> bitShiftRight(cityHash64(lower(hex(reinterpretAsFixedString(id)))), 32),
        arrayConcat(groupArrayArray(s.SpanIds),
            arrayMap(call -> toUInt64(bitShiftRight(call, 64)), groupArrayArray(s.Calls))))))) AS Ids
FROM mast_run_states AS s
WHERE {runs}
GROUP BY s.Project, s.TraceId
"""
_MARK = f"""
INSERT INTO mast_run_states (Project, TraceId, Day, LastSeen, Old)
SELECT Project, TraceId, OldDay, toDateTime64(0, 3), if(Ids >= Marks, MaxOld + 1, 3)
FROM ({_STATES.replace("{runs}", RANGE)})
WHERE MaxOld = 1 OR MaxOld = 3 AND Ids >= Marks
"""  # noqa: S608  # made of constants
# By the former view, in inserts that had begun when it was changed.
_LATE = _STATES.replace(
    "{runs}",
    "(s.Project, s.TraceId) GLOBAL IN (SELECT Project, TraceId FROM mast_run_states "
    "WHERE Old != 0 AND LastSeen >= toDateTime64({since:DateTime}, 3) - 600)",
)
_LATE = f"SELECT Project, TraceId FROM ({_LATE}) WHERE Ids < Marks"  # noqa: S608  # made of constants


@dataclass(frozen=True)
class RunRange:
    """Runs of one project, from one trace up to another.

    Attributes:
        spans: number of their spans that earlier versions stored.
    """

    project: str
    first: str
    last: str
    spans: int = 0

    @property
    def params(self) -> dict[str, Any]:
        """The values of `RANGE`."""
        return {name: value for name, value in asdict(self).items() if name != "spans"}


def remember_totals(store: Store) -> None:
    """Record the totals of runs as the former view has them; call it before the view is changed.

    Raises:
        StorageError: the database refused; call it again later.
    """
    for piece in pieces(store):
        store.command(_REMEMBER, piece.params, settings=WRITE_SETTINGS)


def old_spans(store: Store) -> int:
    """Return the approximate number of spans of all pieces."""
    (row,) = store.query(_HOW_MANY)
    return int(row["Spans"])


def pieces(store: Store) -> Iterator[RunRange]:
    """Yield pieces that cover all former runs, from a random start and around.

    Processes that repair one database at once begin at different pieces.
    """
    for project in [row["Project"] for row in store.query(_PROJECTS)]:
        middle = secrets.token_hex(16)
        yield from _between(store, project, middle, "")
        yield from _between(store, project, "", middle)


def _between(store: Store, project: str, after: str, end: str) -> Iterator[RunRange]:
    while True:
        given = {"project": project, "after": after, "end": end, "rows": _ROWS_AT_ONCE}
        rows = store.query(_NEXT, given)
        if not rows:
            return
        first = after = rows[0]["TraceId"]
        spans = 0
        for row in rows:
            if spans >= SPANS_AT_ONCE and row["TraceId"] != after:
                break
            spans, after = spans + int(row["Length"]), row["TraceId"]
        yield RunRange(project, first, after, spans)


def repair_totals(
    store: Store, options: SchemaOptions, stop: threading.Event | None = None
) -> bool:
    """Make the totals exact of all runs whose spans still exist.

    Args:
        store: one whose tables have the columns for it.
        options: of the tables.
        stop: ends the repair after the present piece when set.

    Returns:
        Whether it is done; False if it was stopped.

    Raises:
        StorageError: the database refused; earlier repairs remain.
    """
    sql = _sql(store, options)
    began = reported = time.monotonic()
    done, total = 0, old_spans(store)
    (clock,) = store.query("SELECT now() AS Now")
    for piece in chain(_left(store), _late(store, clock["Now"])):
        if stop is not None and stop.is_set():
            return False
        store.command(sql, piece.params, settings=WRITE_SETTINGS)
        store.command(_MARK, piece.params, settings=WRITE_SETTINGS)
        done += piece.spans
        if time.monotonic() - reported >= _SECONDS_BETWEEN_REPORTS:
            reported = time.monotonic()
            progress = f"{done:,} of {total:,}"
            logger.info("totals of stored runs are being made exact: %s spans", progress)
    if reported > began:
        logger.info("totals of stored runs are exact, after %.0f s", time.monotonic() - began)
    return True


def _sql(store: Store, options: SchemaOptions) -> str:
    states = states_of_stored_spans(options, of=RANGE)
    columns = ", ".join(name for name, _ in store.describe(states, RunRange("", "", "").params))
    return _REPAIR.replace("{columns}", columns).replace("{states}", states)


def _left(store: Store) -> Iterator[RunRange]:
    """Yield the pieces with runs that have not been repaired by another process or at another time."""
    for piece in pieces(store):
        (row,) = store.query(_ARE_ANY_LEFT, piece.params)
        if row["Runs"]:
            yield piece


def _late(store: Store, since: datetime) -> Iterator[RunRange]:
    """Yield the runs that got rows through the former view, about the time when the repair began."""
    for row in store.query(_LATE, {"since": since}):
        yield RunRange(row["Project"], row["TraceId"], row["TraceId"])
