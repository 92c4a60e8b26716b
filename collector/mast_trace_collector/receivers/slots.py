"""Slots for work that only few requests may do at a time, shared among senders."""

from __future__ import annotations

import asyncio
from collections import Counter, deque


class Slots:
    """A number of slots, of which no sender has more than half, so that another finds one.

    Args:
        count: number of slots.
    """

    def __init__(self, count: int) -> None:
        self._free = count
        self._each = max(1, count // 2)
        self._taken: Counter[str] = Counter()
        self._waiting: deque[tuple[str, asyncio.Future[None]]] = deque()

    async def take(self, sender: str) -> None:
        """Wait for a slot; those of a sender come in order."""
        if self._has_one_for(sender):
            self._give(sender)
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((sender, turn))
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.give_back(sender)
            raise

    def give_back(self, sender: str) -> None:
        """Release a slot."""
        self._free += 1
        self._taken[sender] -= 1
        if not self._taken[sender]:
            del self._taken[sender]
        passed: deque[tuple[str, asyncio.Future[None]]] = deque()
        while self._waiting and self._free:
            who, turn = self._waiting.popleft()
            if turn.done():
                continue
            if self._has_one_for(who):
                self._give(who)
                turn.set_result(None)
            else:
                passed.append((who, turn))
        self._waiting.extendleft(reversed(passed))

    def _has_one_for(self, sender: str) -> bool:
        return self._free > 0 and self._taken[sender] < self._each

    def _give(self, sender: str) -> None:
        self._free -= 1
        self._taken[sender] += 1
