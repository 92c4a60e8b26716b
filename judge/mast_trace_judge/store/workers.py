"""The workers that judge the runs of a database together, and the runs that each of them has.

ClickHouse compares and sets nothing, so nobody is elected and no run is locked. Each worker says every few seconds
that it lives; a run belongs to the living worker whose id, hashed with the run's, is the greatest (rendezvous
hashing), so that one that comes or goes moves its own share alone. A worker that comes takes no run until all others
have seen it, and says which runs its model reads before it asks, so that no two pay for the same reading.
"""

from __future__ import annotations

import time
import uuid
from threading import Lock
from typing import TYPE_CHECKING, Final

from mast_trace_collector.storage.runs import MINE, WORKER_AWAY

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from mast_trace_collector.storage.store import Store

BEAT: Final = 5.0
"""Seconds between two signs of life."""
_SETTLED: Final = 3 * BEAT
"""Seconds in which all others look for workers, and one beat more for the time that a row takes to other replicas."""
# The times are the server's: clocks of workers do not matter.
_SAY: Final = """INSERT INTO mast_workers (WorkerId, Seen, Gone, Reading)
SELECT {worker:String}, now64(3), {gone:Bool}, {reading:Array(String)}"""
_OTHERS: Final = """SELECT WorkerId, Seen >= now64(3) - toIntervalSecond({away:UInt32}) AS Lives
FROM mast_workers FINAL WHERE NOT Gone AND WorkerId != {worker:String}"""
_MINE: Final = f"""SELECT Run FROM (SELECT arrayJoin({{runs:Array(String)}}) AS Run)
WHERE {MINE.replace("{run}", "Run")}"""  # noqa: S608  # made of constants


class Workers:
    """This worker among those that share its store; an embedded store has one, which says nothing.

    Args:
        store: of all projects.
        reading: returns the ids of the runs that this worker's model is reading.
        clock: returns monotonic seconds, which go on while a process is stopped.

    Attributes:
        living: ids of the living workers, this one's first.
    """

    def __init__(
        self,
        store: Store,
        reading: Callable[[], Iterable[str]],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._id = uuid.uuid4().hex
        self.living: tuple[str, ...] = (self._id,)
        self._store = store
        self._reading = reading
        self._clock = clock
        self._shared = not store.embedded_path
        self._said: float | None = None
        self._takes_from = 0.0
        self._claimed: frozenset[str] = frozenset()
        self._saying = Lock()

    @property
    def takes(self) -> bool:
        """True where this worker may take runs: all others know of it."""
        return self._clock() >= self._takes_from

    @property
    def leads(self) -> bool:
        """True for the one that does the work of all: rows of patterns and facts."""
        return self.takes and self._id == min(self.living)

    def keep(self) -> bool:
        """Say that this worker lives, if it is time, and look who else does; return whether that has changed.

        Raises:
            StorageError: the database does not answer.
        """
        with self._saying:
            return self._keep()

    def claim(self, runs: Iterable[str]) -> frozenset[str]:
        """Say which runs the model is about to read, and return those that it may.

        Args:
            runs: ids of runs that were this worker's when they were looked for.

        Raises:
            StorageError: the database does not answer.
        """
        wanted = sorted(runs)
        if not self._shared or not wanted:
            return frozenset(wanted)
        with self._saying:
            self._keep()
            if not self.takes:
                return frozenset()
            rows = self._store.query(_MINE, {"workers": list(self.living), "runs": wanted})
            mine = frozenset(row["Run"] for row in rows)
            # Until the next beat, by which they are being read.
            self._claimed = mine
            self._say()
        return mine

    def leave(self) -> None:
        """Say that this worker has ended, or rests, so that others take its runs at once.

        Raises:
            StorageError: the database does not answer.
        """
        if self._said is not None:
            self._say(gone=True)
            self._said = None

    def _keep(self) -> bool:
        now = self._clock()
        if not self._shared or (self._said is not None and now < self._said + BEAT):
            return False
        # One that was stopped, or that could not reach the database, was taken for dead: it comes anew.
        comes = self._said is None or now > self._said + WORKER_AWAY
        self._say()
        self._claimed = frozenset()
        rows = self._store.query(_OTHERS, {"worker": self._id, "away": round(WORKER_AWAY)})
        if comes and rows:
            self._takes_from = now + _SETTLED
        living = (self._id, *sorted(row["WorkerId"] for row in rows if row["Lives"]))
        changed = comes or living != self.living
        self.living = living
        return changed

    def _say(self, *, gone: bool = False) -> None:
        reading = [] if gone else sorted(self._claimed.union(self._reading()))
        self._store.command(_SAY, {"worker": self._id, "gone": gone, "reading": reading})
        self._said = self._clock()
