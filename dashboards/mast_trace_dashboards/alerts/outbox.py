"""Alerts on their way: tried again with growing pauses while the receiver is away.

What one look changed is one delivery, and stays it, also across restarts: sent again it has the
same key. A delivery that a receiver cannot read is divided, so that one alert holds up no other.
"""

from __future__ import annotations

import hashlib
import logging
import random
import time
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mast_trace_dashboards.alerts.lifecycle import Change
    from mast_trace_dashboards.alerts.webhook import DeliveryResult

    Delivery = tuple[Change, ...]

logger = logging.getLogger(__name__)

FIRST_PAUSE: Final = 1.0
LONGEST_PAUSE: Final = 60.0
LARGEST: Final = 50
"""Changes in one delivery."""
MOST: Final = 1000
"""Deliveries that wait; beyond them the oldest are given up."""


class Outbox:
    """Deliveries in the order in which they came about.

    Args:
        post: sends one with its key.
        label: the receiver's name in the log.
        waiting: what an earlier process could not deliver.

    Attributes:
        waiting: deliveries that no receiver has taken.
        next_try: seconds of `time.monotonic` before which nothing is sent.
    """

    def __init__(
        self,
        post: Callable[[Delivery, str], DeliveryResult],
        label: str,
        waiting: Sequence[Delivery] = (),
    ) -> None:
        self.waiting = list(waiting)
        self.next_try = 0.0
        self._post, self._label = post, label
        self._pause = FIRST_PAUSE
        self._problem = ""

    def add(self, changes: Sequence[Change]) -> None:
        """Take what one look changed."""
        self.waiting += [
            tuple(changes[at : at + LARGEST]) for at in range(0, len(changes), LARGEST)
        ]
        if (excess := len(self.waiting) - MOST) and excess > 0:
            del self.waiting[:excess]
            logger.error("%d old deliveries to %s are given up", excess, self._label)

    def flush(self) -> bool:
        """Send what waits, up to the first that is not taken; say whether anything has changed."""
        if not self.waiting or time.monotonic() < self.next_try:
            return False
        delivery = self.waiting[0]
        answer = self._post(delivery, key_of(delivery))
        if not answer.problem:
            self.waiting.pop(0)
            self._taken()
        elif answer.unreadable:
            self._divide(answer.problem)
        else:
            self._failed(answer.problem)
        return not answer.problem or answer.unreadable

    def _taken(self) -> None:
        if self._problem:
            logger.warning("%s takes alerts again", self._label)
        self._pause, self._problem, self.next_try = FIRST_PAUSE, "", 0.0

    def _divide(self, problem: str) -> None:
        first = self.waiting.pop(0)
        if len(first) > 1:
            self.waiting[:0] = [(change,) for change in first]
            return
        logger.error("%s cannot read an alert (%s): %s", self._label, problem, first[0].alert.key)

    def _failed(self, problem: str) -> None:
        """Wait, longer each time; a trouble is told when it begins, not at each try."""
        self.next_try = time.monotonic() + self._pause * random.uniform(0.8, 1.2)  # noqa: S311
        self._pause = min(self._pause * 2, LONGEST_PAUSE)
        if problem != self._problem:
            logger.warning(
                "%s does not take alerts (%s); they wait on disk, and are tried again every %g s",
                *(self._label, problem, LONGEST_PAUSE),
            )
        self._problem = problem


def key_of(delivery: Delivery) -> str:
    """Return what a receiver tells a repeated delivery by."""
    told = "\n".join(f"{each.alert.key} {each.kind} {each.began}" for each in delivery)
    return hashlib.sha256(told.encode()).hexdigest()[:32]
