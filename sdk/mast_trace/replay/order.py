"""Order in which a replay releases answers: the recorded one, among calls that overlapped in time.

A replayed answer needs no time, so that parallel branches would finish in another order than in the
recorded run. An answer therefore waits for those that came before it in the recorded run while its own
call was open: a model's for models' answers, a tool's result for results of the tools beside it. It waits
for a second at most, and after three waits in vain nothing waits any more: the program then works in
another order, which the comparison of the runs shows.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from mast_trace.fork_safe import lock
from mast_trace.replay.tape import Execution

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mast_trace.replay.tape import Exchange

    _Call = Exchange | Execution

LONGEST = 1.0
"""Seconds that an answer waits at most."""
_PAUSE = 0.003
"""Seconds between two looks, and between two answers of overlapping calls."""
_VAIN = 3
_MOST = 32


class Order:
    """Releases the answers to the model calls, or to the tool calls, of a tape.

    Args:
        calls: in order of completion.
    """

    def __init__(self, calls: Sequence[_Call]) -> None:
        self._lock = lock()
        self._calls = calls  # kept, so that their ids are not reused
        self._before = {
            _name(own): [_name(other) for other in _earlier(calls, place)]
            for place, own in enumerate(calls)
        }
        self._released: dict[str, float] = {}
        self._in_vain = 0

    def stop(self) -> None:
        """Release every answer at once from now on."""
        self._in_vain = _VAIN

    def release(self, call: _Call) -> None:
        """Release a call that the program answers itself, so that no other waits for it."""
        with self._lock:
            self._released.setdefault(_name(call), time.monotonic())

    def wait(self, call: _Call) -> None:
        """Return when it is the call's turn, and release it."""
        until = time.monotonic() + LONGEST
        while not self._may_leave(call, until):
            time.sleep(_PAUSE)

    async def wait_async(self, call: _Call) -> None:
        """Return when it is the call's turn, and release it; for tasks of asyncio.

        It suspends the task at least once, as a real request does, so that other tasks get their turn.
        """
        until = time.monotonic() + LONGEST
        await asyncio.sleep(0)
        while not self._may_leave(call, until):  # noqa: ASYNC110  # threads release answers, too
            await asyncio.sleep(_PAUSE)

    def _may_leave(self, call: _Call, until: float) -> bool:
        now = time.monotonic()
        with self._lock:
            waiting = self._in_vain < _VAIN and any(
                self._released.get(each, now) > now - _PAUSE
                for each in self._before.get(_name(call), ())
            )
            if waiting and now < until:
                return False
            self._in_vain += waiting
            self._released[_name(call)] = now
            return True


class ToolOrder(Order):
    """Releases the results of tools, which frameworks also call in an event loop's own thread."""

    def wait(self, call: _Call) -> None:
        """Return when it is the call's turn, and release it; at once where a wait would hold up the others."""
        if _in_asyncio():
            self.release(call)
        else:
            super().wait(call)

    async def wait_async(self, call: _Call) -> None:
        """Return when it is the call's turn, and release it; at once in another library's loop."""
        if _in_asyncio():
            await super().wait_async(call)
        else:
            self.release(call)


def _in_asyncio() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _name(call: _Call) -> str:
    """Return a name that a changed answer leaves as it is."""
    return call.span_id or str(id(call))


def _earlier(calls: Sequence[_Call], place: int) -> Iterator[_Call]:
    """Yield the calls that ended while the one at ``place`` was open, before that ended.

    A tool may call others, which are not asked for while it is answered from the record: of tool calls
    those with the same span around them count.
    """
    own = calls[place]
    # Each of many calls at once waits for the nearest ones, which wait for those before them.
    for number in range(place - 1, max(place - 1 - _MOST, -1), -1):
        other = calls[number]
        if other.end <= own.start:
            return
        if other.end < own.end and _around(other) == _around(own):
            yield other


def _around(call: _Call) -> str:
    return call.parent if isinstance(call, Execution) else ""
