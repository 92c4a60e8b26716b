"""Start records: log records that announce a run, for runs whose process is killed.

A span is exported when it ends, and a run's root span ends last. Therefore a log record announces
the run with the attributes that the root has at its beginning (an event of OpenTelemetry,
`semconv.RUN_START`).
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord, SeverityNumber
from opentelemetry.sdk.trace import ReadableSpan

from mast_trace import semconv
from mast_trace.delivery.encoding import DeliveryLimits, estimated_size, request_of
from mast_trace.delivery.transport import Fate

if TYPE_CHECKING:
    from opentelemetry.proto.trace.v1.trace_pb2 import Span as EncodedSpan


_MOST_ROOTS = 4096
"""Number of open roots that are remembered; beyond it, the end of the oldest goes unnoticed."""
_MOST_FAILURES = 3
"""Failures in a row, of an endpoint that accepts spans, after which no records are sent for a
while.
"""
_PAUSE = 600.0
"""Seconds for which no records are sent to an endpoint that accepts none."""
# Before 1.30, which the traced program may use, a record had no event name.
_HAS_EVENT_NAME = "event_name" in LogRecord.DESCRIPTOR.fields_by_name


def snapshot(root: ReadableSpan) -> ReadableSpan:
    """Return the root's present state; another thread may still be changing the span."""
    attributes: Any = root.attributes or {}  # its copy is a plain dict, and quick
    return ReadableSpan(
        name=root.name,
        context=root.context,
        parent=root.parent,
        resource=root.resource,
        attributes=attributes.copy(),
        kind=root.kind,
        start_time=root.start_time,
        end_time=root.start_time,
        instrumentation_scope=root.instrumentation_scope,
    )


def encode_starts(roots: Sequence[ReadableSpan]) -> bytes | None:
    """Return the request with the start records of these runs; None if it cannot be encoded."""
    request = ExportLogsServiceRequest()
    try:
        # The span encoder's texts, numbers and lists are those of log records, too.
        for resource in request_of(roots).resource_spans:
            logs = request.resource_logs.add()
            logs.resource.CopyFrom(resource.resource)
            logs.schema_url = resource.schema_url
            for scope in resource.scope_spans:
                of_scope = logs.scope_logs.add()
                of_scope.scope.CopyFrom(scope.scope)
                of_scope.schema_url = scope.schema_url
                of_scope.log_records.extend(_record(span) for span in scope.spans)
        return bytes(request.SerializeToString())
    except Exception:  # noqa: BLE001  # whatever a foreign value provokes: the spans tell of it
        return None


def _record(span: EncodedSpan) -> LogRecord:
    record = LogRecord(
        time_unix_nano=span.start_time_unix_nano,
        observed_time_unix_nano=span.start_time_unix_nano,
        severity_number=SeverityNumber.SEVERITY_NUMBER_INFO,
        severity_text="INFO",
        attributes=span.attributes,
        flags=span.flags & 0xFF,
        trace_id=span.trace_id,
        span_id=span.span_id,
    )
    record.body.string_value = span.name
    if _HAS_EVENT_NAME:
        record.event_name = semconv.RUN_START
    else:
        record.attributes.add(key=semconv.EVENT_NAME).value.string_value = semconv.RUN_START
    return record


class StartRecords:
    """The start records of one process that are not delivered yet.

    A record waits for `DeliveryLimits.pace`: a run that has ended by then needs none, and later its agents
    mostly wait for a model. One that finds no collector waits until spans have found it. An endpoint that
    takes no log records, as many do not, is sent none for a while.

    Args:
        limits: see `DeliveryLimits`.

    Attributes:
        added: number of records so far.
    """

    def __init__(self, limits: DeliveryLimits) -> None:
        self._limits = limits
        self._waiting: dict[int, tuple[ReadableSpan, int]] = {}
        self._bytes = 0
        self._untried: set[int] = set()
        self._sending: dict[int, tuple[ReadableSpan, int]] = {}
        self._open: dict[int, None] = {}
        self.added = 0
        self._tried = self._sending_until = 0
        self._failures = 0
        self._next = 0.0
        self._silent_until = 0.0

    def pending(self, until: int) -> bool:
        """Return whether one of the first ``until`` records is untried, or on its way."""
        return self._tried < until and bool(self._untried or self._sending)

    def add(self, root: ReadableSpan) -> float:
        """Take the root of a run that has begun; return the time at which a request is due, or infinity."""
        now = time.monotonic()
        identity = _id_of(root)
        self.added += 1
        self._open[identity] = None
        if len(self._open) > _MOST_ROOTS:
            del self._open[next(iter(self._open))]
        if now < self._silent_until:
            return float("inf")
        if not self._untried:
            self._next = max(self._next, now + self._limits.pace)
        self._keep(identity, (root, estimated_size(root)))
        self._untried.add(identity)
        return self._next

    def ended(self, span: ReadableSpan) -> bool:
        """Take note that a span ended; return whether it was the root of a run.

        Its record is dropped, because the span itself is exported.
        """
        identity = _id_of(span)
        if identity not in self._open:
            return False
        del self._open[identity]
        self._drop(identity)
        return True

    def due_in(self, now: float) -> float | None:
        """Return the seconds until the next request; None if no record is to be sent."""
        return max(0.0, self._next - now) if self._untried else None

    def take(self, now: float) -> list[ReadableSpan]:
        """Return the records of the next request."""
        self._next = now + self._limits.pace
        self._sending_until = self.added
        self._untried.clear()
        for identity, (root, size) in list(self._waiting.items()):
            self._drop(identity)
            self._sending[identity] = (root, size)
        return [root for root, _ in self._sending.values()]

    def settle(self, fate: Fate) -> None:
        """Handle the answer to the records that `take` returned last."""
        sent, self._sending = self._sending, {}
        self._tried = self._sending_until
        if fate is Fate.ACCEPTED:
            self._failures = 0
        elif fate in {Fate.LATER, Fate.UNREACHABLE}:
            for identity, kept in sent.items():
                if identity in self._open:
                    self._keep(identity, kept)
        elif fate is not Fate.UNFIT:
            self._give_up()

    def spans_arrived(self) -> None:
        """Note that spans were accepted: records that found no collector before are due again."""
        if retried := self._waiting.keys() - self._untried:
            self._failures += 1
            self._untried |= retried
        if self._failures >= _MOST_FAILURES:
            self._give_up()

    def _give_up(self) -> None:
        self._silent_until = time.monotonic() + _PAUSE
        self._failures = 0
        self._bytes = 0
        self._waiting.clear()
        self._untried.clear()

    def _keep(self, identity: int, kept: tuple[ReadableSpan, int]) -> None:
        """Hold a record; records that wait share one request, and the oldest is dropped when it is full."""
        self._waiting[identity] = kept
        self._bytes += kept[1]
        limits = self._limits
        while len(self._waiting) > 1 and (
            len(self._waiting) > limits.request_spans or self._bytes > limits.request_bytes
        ):
            self._drop(next(iter(self._waiting)))

    def _drop(self, identity: int) -> None:
        if kept := self._waiting.pop(identity, None):
            self._bytes -= kept[1]
        self._untried.discard(identity)


def _id_of(span: ReadableSpan) -> int:
    context: Any = span.context
    return int(context.span_id)
