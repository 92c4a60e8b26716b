"""Order in which a replay releases answers: the recorded one, among calls that overlapped in time.

A replayed answer needs no time, so that parallel branches would finish in another order than in the
recorded run. An answer therefore waits for those that came before it in the recorded run while its own
call was open: a model's for models' answers, a tool's result for results of the tools beside it. It waits
for a second at most while none of the calls before it is released, or two where one of them waits itself;
hundreds of calls at once are released one after the other. Calls that were waited for in vain are waited for
no more, and after three waits in vain nothing waits any more: the program then works in another order,
which the comparison of the runs shows.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from mast_trace.fork_safe import lock
from mast_trace.replay.tape import Exchange, Execution

if TYPE_CHECKING:
    _Call = Exchange | Execution

LONGEST = 1.0
"""Seconds that an answer waits at most while no call before it is released."""
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
        self._place = {_name(each): place for place, each in enumerate(calls)}
        self._released: dict[str, float] = {}
        self._waiting: dict[str, float] = {}
        """When each call that waits was asked for, or one before it was released."""
        self._in_vain = 0

    def stop(self) -> None:
        """Release every answer at once from now on."""
        self._in_vain = _VAIN

    def release(self, call: _Call) -> None:
        """Release a call that the program answers itself, so that no other waits for it."""
        name, now = _name(call), time.monotonic()
        with self._lock:
            if name not in self._released:
                self._release(name, now)

    def wait(self, call: _Call) -> None:
        """Return when it is the call's turn, and release it."""
        name = _name(call)
        try:
            while not self._may_leave(name):
                time.sleep(_PAUSE)
        finally:
            self._leave(name)

    async def wait_async(self, call: _Call) -> None:
        """Return when it is the call's turn, and release it; for tasks of asyncio.

        It suspends the task at least once, as a real request does, so that other tasks get their turn.
        """
        name = _name(call)
        try:
            await asyncio.sleep(0)
            while not self._may_leave(name):  # noqa: ASYNC110  # threads release answers, too
                await asyncio.sleep(_PAUSE)
        finally:
            self._leave(name)

    def _may_leave(self, name: str) -> bool:
        now = time.monotonic()
        with self._lock:
            since = self._waiting.setdefault(name, now)
            held = self._in_vain < _VAIN and any(self._held(name, now))
            if held:
                if now < since + LONGEST:
                    return False
                missing = list(self._held(name, now))
                # The first of those that wait gives up before the others, which then go on in order.
                if now < since + 2 * LONGEST and any(each in self._waiting for each in missing):
                    return False
                self._in_vain += 1
                for each in missing:
                    self._released.setdefault(each, now - _PAUSE)
            self._release(name, now)
            return True

    def _held(self, name: str, now: float) -> Iterator[str]:
        """Yield the calls for which one waits."""
        for each in self._before.get(name, ()):
            if self._released.get(each, now) > now - _PAUSE:
                yield each

    def _release(self, name: str, now: float) -> None:
        self._released[name] = now
        self._waiting.pop(name, None)
        place = self._place.get(name)
        if place is not None:
            for other in self._waiting:
                if self._place.get(other, -1) > place:
                    self._waiting[other] = now

    def _leave(self, name: str) -> None:
        """Forget a call that no longer waits: one whose task was cancelled, too."""
        with self._lock:
            self._waiting.pop(name, None)


class ToolOrder(Order):
    """Releases the results of tools, which frameworks also call in an event loop's own thread."""

    def wait(self, call: _Call) -> None:
        """Return when it is the call's turn, and release it; at once where a wait would hold up the others."""
        if in_asyncio():
            self.release(call)
        else:
            super().wait(call)

    async def wait_async(self, call: _Call) -> None:
        """Return when it is the call's turn, and release it; at once in another library's loop."""
        if in_asyncio():
            await super().wait_async(call)
        else:
            self.release(call)


def in_asyncio() -> bool:
    """Return whether asyncio runs the calling task; False in another library's loop."""
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
