"""What is delivered: how much at a time, in which bytes, and what became of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opentelemetry.sdk.trace import ReadableSpan


@dataclass(frozen=True)
class DeliveryLimits:
    """How much waits, and how much goes into one request.

    Attributes:
        delay: seconds that a span waits for company.
        request_bytes: beyond which a request is split; receivers commonly stop at 4 MiB.
        request_spans: that make a batch without waiting any longer.
        queue_bytes: of waiting spans, about; what comes beyond is dropped and counted.
        queue_spans: likewise.
        retry_for: seconds after which a request that is told "later" each time is given up.
        exit: seconds that the end of the program may take.
    """

    delay: float = 1.0
    request_bytes: int = 3 * 1024 * 1024
    request_spans: int = 512
    queue_bytes: int = 64 * 1024 * 1024
    queue_spans: int = 16384
    retry_for: float = 300.0
    exit: float = 5.0


@dataclass(frozen=True)
class Delivered:
    """What became of the spans of this process.

    Attributes:
        accepted: by the collector.
        refused: by the collector, for good.
        undelivered: given up, because no collector took them in time.
        dropped: because the queue was full, or closed.
        waiting: not delivered yet.
        error: the last one, for people.
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


def encode(spans: Sequence[ReadableSpan]) -> bytes | None:
    """Return the request for these spans, or None if some span cannot be written."""
    try:
        return bytes(encode_spans(spans).SerializePartialToString())
    except Exception:  # noqa: BLE001  # whatever a foreign value provokes: the caller isolates it
        return None


def estimated_size(span: ReadableSpan) -> int:
    """Return about the bytes that a span takes, cheaply: this runs in the agents' threads."""
    attributes: Any = span.attributes or {}
    # The SDK's own mapping walks in Python, item by item; its copy is a plain one.
    values = attributes.copy().values()
    size = 256 + 48 * len(values)
    for value in values:
        if isinstance(value, str):
            size += len(value)
        elif isinstance(value, tuple):
            size += sum([len(item) + 4 if isinstance(item, str) else 12 for item in value])
    for event in span.events:
        size += 64 + sum(len(str(value)) for value in (event.attributes or {}).values())
    return size
