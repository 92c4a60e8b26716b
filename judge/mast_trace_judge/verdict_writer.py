"""Stores a worker's verdicts, and decides what becomes of a run that fails: it waits, or it is unscored."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict
from typing import TYPE_CHECKING, Final

from mast_trace.exceptions import StorageError
from mast_trace.retry_after import doubled
from mast_trace_collector.storage.transient import is_transient
from mast_trace_judge.store import verdicts as verdict_store
from mast_trace_judge.store.apart import apart

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mast_trace_collector.storage.runs import RunSummary
    from mast_trace_collector.storage.store import Store
    from mast_trace_judge.judge import Judge
    from mast_trace_judge.verdict import Verdict

    Judged = tuple[RunSummary, Verdict]
    from mast_trace_collector.storage.runs import RunSummary

Key = tuple[str, str, str]
"""A run with its present content: project, trace id, fingerprint."""
_FIRST: Final = 10.0
_LONGEST: Final = 600.0
_FORGOTTEN: Final = 3600.0
"""Seconds after the end of its pause in which a run that does not come up again is remembered."""

_LOG = logging.getLogger(__name__)
_MOST_LOGGED: Final = 1000
_MOST_REMEMBERED: Final = 10_000


def key_of(run: RunSummary | Verdict) -> Key:
    """Return the key of a run, or of the run of a verdict."""
    return (run.project, run.trace_id, run.fingerprint)


class HeldOff:
    """The pauses of runs, each twice as long as the one before.

    Args:
        clock: returns monotonic seconds.
    """

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._runs: dict[Key, tuple[int, float]] = {}
        self._looked = 0.0

    def add(self, key: Key, *, longest: float = _LONGEST) -> float:
        """Let a run pause; return for how many seconds."""
        times = self._runs.get(key, (0, 0.0))[0] + 1
        pause = doubled(_FIRST, times, longest)
        self._runs[key] = (times, self._clock() + pause)
        return pause

    def __len__(self) -> int:
        """Return the number of runs that pause, or have not come up again since."""
        return len(self._runs)

    def remove(self, key: Key) -> None:
        """Forget a run, which was judged."""
        self._runs.pop(key, None)

    def look(self) -> tuple[set[Key], bool]:
        """Return the runs whose pause is not over, and whether one has ended since the last look.

        Runs that have not come up again for long are forgotten.
        """
        looked, self._looked = self._looked, self._clock()
        self._runs = {
            key: (times, until)
            for key, (times, until) in self._runs.items()
            if until > self._looked - _FORGOTTEN
        }
        ended = any(looked < until <= self._looked for _, until in self._runs.values())
        return {key for key, (_, until) in self._runs.items() if until > self._looked}, ended


class VerdictWriter:
    """Stores verdicts of many runs, none of which fails for another one.

    Args:
        store: for the verdicts.
        judge: gives the verdict on a run that could not be judged.
        on_verdicts: called with verdicts that have been stored, on the event loop; not with those on runs that have just ended.

    Attributes:
        judged: number of stored verdicts, unscored ones included, and without those that another one is to replace.
        unscored: number of these.
        held_off: the runs that wait for another attempt.
    """

    def __init__(
        self, store: Store, judge: Judge, on_verdicts: Callable[[Sequence[Verdict]], None] | None
    ) -> None:
        self.judged = 0
        self.unscored = 0
        self.held_off = HeldOff()
        self._store = store
        self._judge = judge
        self._on_verdicts = on_verdicts
        self._saving: set[asyncio.Task[set[Key]]] = set()
        self._logged: set[str] = set()
        self._last: OrderedDict[tuple[Key, str], None] = OrderedDict()

    def failed(self, run: RunSummary, error: Exception) -> Sequence[Judged]:
        """Hold a run off after an error that may pass; after any other one, return it unscored with the reason."""
        passes = is_transient(error)
        if passes:
            self.held_off.add(key_of(run))
        description = repr(error)
        _LOG.error(
            "run %s cannot be judged%s: %s",
            run.trace_id,
            " now" if passes else "",
            description,
            extra={"action": "run_not_judged"},
            # One traceback shows the place; a thousand runs may fail there.
            exc_info=None if description in self._logged else error,
        )
        if len(self._logged) < _MOST_LOGGED:
            self._logged.add(description)
        return () if passes else ((run, self._judge.unscored(run, error)),)

    async def save(self, judged: Sequence[Judged]) -> set[Key]:
        """Store verdicts, to the end even if the caller is cancelled meanwhile.

        Returns:
            The runs whose verdicts were stored as they are: not the erased ones, nor the refused ones.

        Raises:
            StorageError: the database does not answer.
        """
        if not judged:
            return set()
        task = asyncio.create_task(self._save(judged))
        self._saving.add(task)
        task.add_done_callback(self._saving.discard)
        return await asyncio.shield(task)

    async def finish(self) -> None:
        """Wait for verdicts that are half stored."""
        await asyncio.gather(*self._saving, return_exceptions=True)

    async def _save(self, judged: Sequence[Judged]) -> set[Key]:
        refused: list[tuple[Judged, Exception]] = []
        stored: set[Key] = set()

        def write(some: Sequence[Judged]) -> None:
            # Without those on runs that were erased meanwhile.
            for each in verdict_store.save(self._store, [verdict for _, verdict in some]):
                stored.add((each.project, each.trace_id, each.fingerprint))

        await asyncio.to_thread(
            apart, judged, write, lambda one, error: refused.append((one, error))
        )
        self._stored([one for one in judged if key_of(one[0]) in stored])
        for (run, verdict), error in refused:
            instead = self.failed(run, error)
            if instead and verdict.status == "unscored":
                self.held_off.add(key_of(run))  # not even the shortest verdict is taken
            elif instead:
                try:
                    await self._save(instead)
                except (StorageError, OSError):
                    self.held_off.add(key_of(run))
        return stored

    def _stored(self, judged: Sequence[Judged]) -> None:
        for run, verdict in judged:
            key, is_final = key_of(run), not verdict.is_provisional
            if (key, verdict.method) in self._last:
                # The database does not find the verdict: the run would come up in each cycle, before others.
                self.held_off.add(key)
            else:
                self.held_off.remove(key)
            self._last[key, verdict.method] = None
            self.judged += is_final
            self.unscored += is_final and verdict.status == "unscored"
        for _ in range(len(self._last) - _MOST_REMEMBERED):
            self._last.popitem(last=False)
        told = [verdict for _, verdict in judged if verdict.method != "provisional"]
        if self._on_verdicts is not None and told:
            try:
                self._on_verdicts(told)
            except Exception:  # noqa: BLE001 - the verdicts are stored all the same
                _LOG.exception("verdicts could not be told", extra={"action": "verdicts_not_told"})
