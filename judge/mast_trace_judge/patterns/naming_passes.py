"""Decides when patterns are named."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Final

from mast_trace.exceptions import StorageError
from mast_trace_judge.patterns.name_rows import erase_outlived, take_back
from mast_trace_judge.patterns.unnamed import due
from mast_trace_judge.side_jobs import to_the_end

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mast_trace_judge.patterns.naming import PatternNamer, Result
    from mast_trace_judge.patterns.unnamed import Unnamed

_LOG = logging.getLogger(__name__)
_PAUSE: Final = 60.0
"""Least seconds between two passes."""
_IDLE: Final = 300.0
"""Seconds between two passes without new runs in patterns."""
_LONGEST_PAUSE: Final = 600.0
_PUT_OFF: Final = 3600.0
_REST: Final = 20.0
"""Times the seconds that the database took to find patterns without names, until the next pass."""


class NamingPasses:
    """Passes over the patterns without names.

    Args:
        namer: asks for a name.
        most: patterns that one pass asks about; 0: none, and names that hold no longer are only taken back.
        clock: returns monotonic seconds.
    """

    def __init__(
        self, namer: PatternNamer, most: int, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._namer = namer
        self._most = most if namer.model else 0
        self._clock = clock
        self._soonest = 0.0
        self._latest = 0.0
        self._pause = _PAUSE
        self._news = 0
        self._put_off: dict[str, float] = {}

    def runs_were_indexed(self) -> None:
        """Note that runs were added to the patterns, so that the next pass need not wait for its longest pause."""
        self._news += 1

    async def step(self) -> bool:
        """Make a pass if it is time; return whether another one is due at once, which it never is."""
        now = self._clock()
        if now >= self._latest or (self._news and now >= self._soonest):
            seen = self._news
            await self.run()
            self._news -= seen
        return False

    async def run(self) -> int:
        """Make one pass now; return the number of stored names.

        Raises:
            StorageError: the database does not answer.
        """
        named = asked = 0
        reached = True
        began = self._clock()
        self._put_off = {key: end for key, end in self._put_off.items() if end > began}
        waiting = await to_the_end(self._look)
        looked_for = self._clock() - began
        for pattern in waiting:
            asked += 1
            result = await self._name(pattern)
            named += result == "named"
            reached = result != "away"
            if not reached:
                break
        self._pause = _PAUSE if reached else min(_LONGEST_PAUSE, 2 * self._pause)
        now = self._clock()
        # However many runs the database has to scan, it is idle most of the time; lapsed names alone can wait.
        pause = max(self._pause, _REST * looked_for, 0 if self._most else _IDLE)
        self._soonest = now + pause
        more = asked == self._most > 0 or not reached
        self._latest = now + (pause if more else max(pause, _IDLE))
        return named

    def _look(self) -> Sequence[Unnamed]:
        """Take back and erase names that hold no longer; return the patterns to ask about."""
        store = self._namer.store
        erase_outlived(store)
        found = due(store, self._namer.model, without=self._put_off, limit=self._most)
        take_back(store, found.lapsed)
        return found.waiting

    async def _name(self, pattern: Unnamed) -> Result:
        """Ask for one name; a pattern that cannot be asked about makes room for the others for an hour."""
        try:
            result = await self._namer.name(pattern)
        except StorageError:
            raise
        except Exception:  # noqa: BLE001 - a run that cannot be read must not stop the naming of others
            _LOG.exception(
                "pattern %s is not named", pattern.pattern, extra={"action": "patterns_not_named"}
            )
            result = "put off"
        if result == "put off":
            self._put_off[pattern.pattern] = self._clock() + _PUT_OFF
        return result
