"""Runs that a worker leaves alone for a while, after judging them has failed."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from mast_trace_collector.storage.runs import RunSummary

Key = tuple[str, str, str]
"""A run with its present content: project, trace id, fingerprint."""
_FIRST: Final = 5.0
_LONGEST: Final = 600.0
_FORGOTTEN: Final = 3600.0
"""Seconds after the end of its pause in which a run that does not come up again is remembered."""


def key_of(run: RunSummary) -> Key:
    """Return the key of a run."""
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
        pause = min(_FIRST * 2.0 ** min(times, 10), longest)
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
