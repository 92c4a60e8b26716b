"""The OTLP signals that are received, and Protobuf's wire format without a parser."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from opentelemetry.proto.collector.logs.v1 import logs_service_pb2 as logs
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as traces

if TYPE_CHECKING:
    from google.protobuf.message import Message


VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5


def fields(data: bytes) -> Iterator[tuple[int, int, int, int]]:
    """Yield the fields of a message: where each begins, its tag, where its content begins and ends.

    Raises:
        ValueError: from here on the bytes are no fields.
    """
    position, end = 0, len(data)
    while position < end:
        begin = position
        tag, position = varint(data, position)
        kind = tag & 7
        if kind == BYTES:
            size, position = varint(data, position)
            content, position = position, position + size
        elif kind in {VARINT, FIXED64, FIXED32}:
            content, position = position, after(data, position, kind)
        else:
            raise ValueError("a field has no known type")
        if position > end:
            raise ValueError("a field is longer than its message")
        yield begin, tag, content, position


def after(data: bytes, position: int, kind: int) -> int:
    """Return the offset after a number; the marks of a group consist of tags alone."""
    if kind == VARINT:
        return varint(data, position)[1]
    return position + {FIXED64: 8, FIXED32: 4}.get(kind, 0)


def varint(data: bytes, position: int) -> tuple[int, int]:
    """Read a number and the offset after it; a number cut off by the data's end ends there."""
    if position < len(data) and data[position] < 0x80:
        return data[position], position + 1
    value = shift = 0
    for byte in data[position : position + 10]:
        position += 1
        if byte < 0x80:
            return value | byte << shift, position
        value |= (byte & 0x7F) << shift
        shift += 7
    return value, len(data)


def encoded(number: int) -> bytes:
    """Return a number, such as a length, as `varint` reads it."""
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


@dataclass(frozen=True)
class Signal:
    """One of OTLP's signals.

    Attributes:
        name: as in its HTTP path.
        service: its gRPC service.
        request: type of the export request.
        response: type of the answer.
        resources: field of the request that lists resources.
        scopes: field of a resource that lists scopes.
        items: field of a scope that lists spans or log records.
        rejected: field of the partial success that counts what was left out.
    """

    name: str
    service: str
    request: type[Message]
    response: type[Message]
    resources: str
    scopes: str
    items: str
    rejected: str

    def answer(self, rejected: int, message: str) -> Any:
        """The response to an accepted request; a message without a number is a warning."""
        response: Any = self.response()
        if message:
            setattr(response.partial_success, self.rejected, rejected)
            response.partial_success.error_message = message
        return response


TRACES = Signal(
    name="traces",
    service="opentelemetry.proto.collector.trace.v1.TraceService",
    request=traces.ExportTraceServiceRequest,
    response=traces.ExportTraceServiceResponse,
    resources="resource_spans",
    scopes="scope_spans",
    items="spans",
    rejected="rejected_spans",
)
LOGS = Signal(
    name="logs",
    service="opentelemetry.proto.collector.logs.v1.LogsService",
    request=logs.ExportLogsServiceRequest,
    response=logs.ExportLogsServiceResponse,
    resources="resource_logs",
    scopes="scope_logs",
    items="log_records",
    rejected="rejected_log_records",
)
METRICS_SERVICE = "opentelemetry.proto.collector.metrics.v1.MetricsService"
