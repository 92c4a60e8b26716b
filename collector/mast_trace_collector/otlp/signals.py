"""The OTLP signals that are received: their messages and the names of their fields."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from opentelemetry.proto.collector.logs.v1 import logs_service_pb2 as logs
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as traces

if TYPE_CHECKING:
    from google.protobuf.message import Message


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
