"""The outbox of alerts: deliveries are retried with growing pauses while the receiver is down.

The changes of one evaluation are one delivery, also across restarts: it keeps its key when sent
again. A delivery that a receiver cannot read is divided, so that one alert does not block others.
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
"""Most changes in one delivery."""
MOST: Final = 1000
"""Most deliveries that wait; beyond them the oldest are given up."""


class Outbox:
    """Deliveries in their order.

    Args:
        post: sends a delivery with its key.
        label: the receiver's name in the log.
        waiting: deliveries that an earlier process could not send.

    Attributes:
        waiting: deliveries that no receiver has accepted.
        next_try: `time.monotonic` before which nothing is sent.
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
        """Add the changes of one evaluation."""
        self.waiting += [
            tuple(changes[at : at + LARGEST]) for at in range(0, len(changes), LARGEST)
        ]
        if (excess := len(self.waiting) - MOST) and excess > 0:
            del self.waiting[:excess]
            logger.error("%d old deliveries to %s are given up", excess, self._label)

    def flush(self) -> bool:
        """Send what waits, up to the first delivery that is not accepted; return whether anything changed."""
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
        """Wait, longer each time; a failure is logged when it begins, not at each try."""
        self.next_try = time.monotonic() + self._pause * random.uniform(0.8, 1.2)  # noqa: S311
        self._pause = min(self._pause * 2, LONGEST_PAUSE)
        if problem != self._problem:
            logger.warning(
                "%s does not take alerts (%s); they wait on disk, and are tried again every %g s",
                *(self._label, problem, LONGEST_PAUSE),
            )
        self._problem = problem


def key_of(delivery: Delivery) -> str:
    """Return the key by which a receiver recognises a repeated delivery."""
    changes = "\n".join(f"{each.alert.key} {each.kind} {each.began}" for each in delivery)
    return hashlib.sha256(changes.encode()).hexdigest()[:32]
