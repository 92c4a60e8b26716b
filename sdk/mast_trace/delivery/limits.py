"""Limits of delivery, the sizes of spans, and counts of the outcome."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan


@dataclass(frozen=True)
class DeliveryLimits:
    """The sizes of queue and requests, and the times of delivery.

    Attributes:
        delay: seconds that a span waits for others of its batch.
        request_bytes: size beyond which a request is split; receivers commonly stop at 4 MiB.
        request_spans: number of spans that is sent without waiting any longer.
        queue_bytes: approximate size of the queue; spans beyond it are dropped and counted.
        queue_spans: number of spans in the queue; likewise.
        retry_for: seconds after which a request is given up that the collector defers each time.
        exit: seconds by which delivery may delay the end of the program.
        pace: least seconds between two requests that are sent at once: at the beginning of a run
            and at its end.
        worker_wait: seconds by which delivery may delay the end of a run in a worker process that
            is about to be terminated.
    """

    delay: float = 1.0
    request_bytes: int = 3 * 1024 * 1024
    request_spans: int = 512
    queue_bytes: int = 64 * 1024 * 1024
    queue_spans: int = 16384
    retry_for: float = 300.0
    exit: float = 5.0
    pace: float = 0.1
    worker_wait: float = 1.0


@dataclass(frozen=True)
class Delivered:
    """Delivery counts of the spans of this process.

    Attributes:
        accepted: by the collector.
        refused: by the collector, for good.
        undelivered: given up, because no collector took them in time.
        dropped: because the queue was full, or closed.
        waiting: not delivered yet.
        error: text of the last error, for people.
    """

    accepted: int = 0
    refused: int = 0
    undelivered: int = 0
    dropped: int = 0
    waiting: int = 0
    error: str = ""

    @property
    def lost(self) -> int:
        """Spans that will never arrive."""
        return self.refused + self.undelivered + self.dropped


def estimated_size(span: ReadableSpan) -> int:
    """Return the approximate size of a span in bytes, cheaply: this runs in the agents' threads."""
    attributes: Any = span.attributes or {}
    # The SDK's own mapping iterates in Python, item by item; a plain copy is faster.
    values = attributes.copy().values()
    size = 256 + 48 * len(values)
    for value in values:
        if type(value) is str:
            size += len(value)
        elif type(value) is tuple:
            try:
                size += sum(map(len, value)) + 4 * len(value)  # no step of Python for each id
            except TypeError:  # numbers
                size += 12 * len(value)
    for event in span.events:
        size += 64 + sum(len(str(value)) for value in (event.attributes or {}).values())
    return size
