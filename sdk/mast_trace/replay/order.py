"""Order in which a replay releases answers: the recorded one, among calls that overlapped in time.

A replayed answer needs no time, so that parallel branches would finish in another order than in the
recorded run. An answer therefore waits for those that came before it in the recorded run while its own
call was open. It waits for a second at most, and after three waits in vain nothing waits any more: the
program then works in another order, which the comparison of the runs shows.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from mast_trace.fork_safe import lock

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mast_trace.replay.tape import Exchange

LONGEST = 1.0
"""Seconds that an answer waits at most."""
_PAUSE = 0.003
"""Seconds between two looks, and between two answers of overlapping calls."""
_VAIN = 3
_MOST = 32


class Order:
    """Releases the exchanges of a tape.

    Args:
        exchanges: in order of completion.
    """

    def __init__(self, exchanges: Sequence[Exchange]) -> None:
        self._lock = lock()
        self._exchanges = exchanges  # kept, so that their ids are not reused
        self._before = {
            id(own): [id(other) for other in _earlier(exchanges, place)]
            for place, own in enumerate(exchanges)
        }
        self._released: dict[int, float] = {}
        self._in_vain = 0

    def stop(self) -> None:
        """Release every answer at once from now on."""
        self._in_vain = _VAIN

    def wait(self, exchange: Exchange) -> None:
        """Return when it is the exchange's turn, and release it."""
        until = time.monotonic() + LONGEST
        while not self._may_leave(exchange, until):
            time.sleep(_PAUSE)

    async def wait_async(self, exchange: Exchange) -> None:
        """Return when it is the exchange's turn, and release it; for tasks of asyncio.

        It suspends the task at least once, as a real request does, so that other tasks get their turn.
        """
        until = time.monotonic() + LONGEST
        await asyncio.sleep(0)
        while not self._may_leave(exchange, until):  # noqa: ASYNC110  # threads release answers, too
            await asyncio.sleep(_PAUSE)

    def _may_leave(self, exchange: Exchange, until: float) -> bool:
        now = time.monotonic()
        with self._lock:
            waiting = self._in_vain < _VAIN and any(
                self._released.get(each, now) > now - _PAUSE
                for each in self._before.get(id(exchange), ())
            )
            if waiting and now < until:
                return False
            self._in_vain += waiting
            self._released[id(exchange)] = now
            return True


def _earlier(exchanges: Sequence[Exchange], place: int) -> Iterator[Exchange]:
    """Yield the exchanges that ended while the one at ``place`` was open, before that ended."""
    own = exchanges[place]
    # Each of many calls at once waits for the nearest ones, which wait for those before them.
    for number in range(place - 1, max(place - 1 - _MOST, -1), -1):
        other = exchanges[number]
        if other.end <= own.start:
            return
        if other.end < own.end:
            yield other
