"""Repairs the totals of runs that were stored before each span was held whole.

The spans are read again, run by run in the order in which they are stored, and what the view would
write of them today is added to the runs' states. These are sets: it may be done twice, by several
processes at once, and while spans arrive. A run that is repaired says so itself, so that a repair
that was broken off goes on where it ended. Runs whose spans are gone keep what is known of them.
"""

from __future__ import annotations

import logging
import secrets
import threading
import time
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

from mast_trace.exceptions import StorageError
from mast_trace_collector.storage.store import WRITE_SETTINGS
from mast_trace_collector.storage.templates import states_of_stored_spans

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from mast_trace_collector.storage.store import Store
    from mast_trace_collector.storage.templates import SchemaOptions

logger = logging.getLogger(__name__)

SPANS_AT_ONCE = 250_000
"""A statement reads the runs of about so many spans: it holds some 32 bytes of each."""
_ROWS_AT_ONCE = 5_000
_SECONDS_BETWEEN_REPORTS = 10.0
_SECONDS_BEFORE_ANOTHER_TRY = 30.0

_HOW_MANY = "SELECT sum(length(Spans)) AS Old FROM mast_run_states WHERE Whole = 0"
_PROJECTS = "SELECT DISTINCT toString(Project) AS Project FROM mast_run_states ORDER BY Project"
# Some states of before, from one trace on; read in the order of the table, not all of them.
_NEXT = """
SELECT TraceId, length(Spans) AS Old FROM mast_run_states
WHERE Project = {project:String} AND TraceId > {after:String}
  AND ({end:String} = '' OR TraceId <= {end:String}) AND Whole = 0
ORDER BY TraceId
LIMIT {rows:UInt32}
"""
# By the view of before, in inserts that had begun when it was changed.
_LATE = """
SELECT Project, TraceId FROM mast_runs
WHERE Totals = 'about' AND (Project, TraceId) IN
(
    SELECT Project, TraceId FROM mast_run_states
    WHERE LastSeen >= toDateTime64({since:DateTime}, 3) - 600 AND Whole = 0
)
"""
_RANGE = "Project = {project:String} AND TraceId >= {first:String} AND TraceId <= {last:String}"
_ARE_ANY_UNKNOWN = f"SELECT count() AS Runs FROM mast_runs WHERE {_RANGE} AND Totals = 'about'"  # noqa: S608
# Under the day on which the run's states stand: what looks for old runs must not take it for a new one.
_REPAIR = """
INSERT INTO mast_run_states ({columns})
SELECT {columns} FROM
(
    SELECT stored.* EXCEPT Day, known.KnownDay AS Day
    FROM ({states}) AS stored
    INNER JOIN
    (
        SELECT TraceId, max(Day) AS KnownDay FROM mast_run_states
        WHERE {range} AND Whole = 0
        GROUP BY TraceId
    ) AS known ON known.TraceId = stored.TraceId
)
"""


@dataclass(frozen=True)
class _Piece:
    """Runs of one project, from one trace up to another."""

    project: str
    first: str
    last: str
    spans: int = 0


def repair_totals(
    store: Store, options: SchemaOptions, stop: threading.Event | None = None
) -> bool:
    """Make the totals of all runs exact whose spans are still there.

    Args:
        store: whose tables have the columns for it.
        options: how the tables are made.
        stop: ends it after a piece when it is set.

    Returns:
        Whether it is done; False if it was stopped.

    Raises:
        StorageError: the database refused; what was repaired before stays repaired.
    """
    repair = _Repair(store, options)
    began = reported = time.monotonic()
    (row,) = store.query(_HOW_MANY)
    done, total = 0, int(row["Old"])
    (clock,) = store.query("SELECT now() AS Now")
    for piece in chain(_pieces(store), _late(store, clock["Now"])):
        if stop is not None and stop.is_set():
            return False
        repair.of(piece)
        done += piece.spans
        if time.monotonic() - reported >= _SECONDS_BETWEEN_REPORTS:
            reported = time.monotonic()
            logger.info(
                "totals of stored runs are being made exact: %s of %s spans",
                f"{done:,}",
                f"{total:,}",
            )
    if reported > began:
        logger.info("totals of stored runs are exact, after %.0f s", time.monotonic() - began)
    return True


class _Repair:
    """The statements of a repair."""

    def __init__(self, store: Store, options: SchemaOptions) -> None:
        self._store = store
        states = states_of_stored_spans(options, of=_RANGE)
        columns = ", ".join(name for name, _ in store.describe(states, vars(_Piece("", "", ""))))
        self._sql = (
            _REPAIR.replace("{columns}", columns)
            .replace("{states}", states)
            .replace("{range}", _RANGE)
        )

    def of(self, piece: _Piece) -> None:
        """Repair the runs of ``piece``, unless that has been done."""
        (row,) = self._store.query(_ARE_ANY_UNKNOWN, vars(piece))
        if row["Runs"]:
            self._store.command(self._sql, vars(piece), settings=WRITE_SETTINGS)


def _pieces(store: Store) -> Iterator[_Piece]:
    """Yield pieces that hold all runs of before, from anywhere on and around.

    Processes that repair one database at once begin at different places, and pass over what others did.
    """
    for project in [row["Project"] for row in store.query(_PROJECTS)]:
        middle = secrets.token_hex(16)
        yield from _between(store, project, middle, "")
        yield from _between(store, project, "", middle)


def _between(store: Store, project: str, after: str, end: str) -> Iterator[_Piece]:
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
            spans, after = spans + int(row["Old"]), row["TraceId"]
        yield _Piece(project, first, after, spans)


def _late(store: Store, since: datetime) -> Iterator[_Piece]:
    """Yield the runs of which something came as before, about the time when the repair began."""
    for row in store.query(_LATE, {"since": since}):
        yield _Piece(row["Project"], row["TraceId"], row["TraceId"])


class RepairLater(threading.Thread):
    """A repair beside everything else; tried again until the database lets it be done.

    Args:
        store: whose schema is up to date but for the repair.
    """

    def __init__(self, store: Store) -> None:
        super().__init__(name="repair-totals", daemon=True)
        self._store = store
        self._stopped = threading.Event()

    def run(self) -> None:
        """Repair, and write down that it is done."""
        from mast_trace_collector.storage.migrations import repair

        while not self._stopped.is_set():
            try:
                repair(self._store, self._stopped)
            except StorageError as error:
                logger.warning("totals of stored runs are not exact yet: %s", error)
                self._stopped.wait(_SECONDS_BEFORE_ANOTHER_TRY)
            else:
                return

    def stop(self) -> None:
        """End it after the piece at hand; the next start goes on from there."""
        self._stopped.set()
        if self.is_alive():
            self.join()
