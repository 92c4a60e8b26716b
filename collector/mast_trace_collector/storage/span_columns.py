"""Converts OTLP spans to rows of ``otel_traces``, as the OpenTelemetry Collector's exporter does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mast_trace import semconv
from mast_trace_collector.storage.attribute_text import attributes_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
    from opentelemetry.proto.resource.v1.resource_pb2 import Resource
    from opentelemetry.proto.trace.v1.trace_pb2 import ScopeSpans, Span

SPAN_COLUMNS = (
    "Timestamp",
    "TraceId",
    "SpanId",
    "ParentSpanId",
    "TraceState",
    "SpanName",
    "SpanKind",
    "ServiceName",
    "ResourceAttributes",
    "ScopeName",
    "ScopeVersion",
    "SpanAttributes",
    "Duration",
    "StatusCode",
    "StatusMessage",
    "Events.Timestamp",
    "Events.Name",
    "Events.Attributes",
    "Links.TraceId",
    "Links.SpanId",
    "Links.TraceState",
    "Links.Attributes",
)
"""The exporter's columns, in its order."""

LATEST_TIME = 2**63 - 1
"""The last nanosecond that DateTime64(9) can hold; later ones are stored as this one."""

_KINDS = ("Unspecified", "Internal", "Server", "Client", "Producer", "Consumer")
_STATUSES = ("Unset", "Ok", "Error")
_NONE: list[Any] = []


class SpanColumns:
    """Spans laid out in columns, in the order of `SPAN_COLUMNS`."""

    def __init__(self) -> None:
        self.columns: list[list[Any]] = [[] for _ in SPAN_COLUMNS]

    def __len__(self) -> int:
        return len(self.columns[0])

    def add(self, request: ExportTraceServiceRequest, project: str | None = None) -> None:
        """Append every span of ``request``.

        Args:
            request: as received.
            project: replaces the sender's project; None keeps that.
        """
        for resource_spans in request.resource_spans:
            resource = attributes_text(resource_spans.resource.attributes)
            if project is not None:
                resource[semconv.PROJECT] = project
            if not resource.get(semconv.PROJECT, "-"):
                del resource[semconv.PROJECT]
            service = _service(resource_spans.resource)
            for scope_spans in resource_spans.scope_spans:
                self._add_scope(scope_spans, resource, service)

    def _add_scope(self, scope_spans: ScopeSpans, resource: dict[str, str], service: str) -> None:
        scope = scope_spans.scope
        scope_name, scope_version = scope.name, scope.version
        appends = [column.append for column in self.columns]
        for span in scope_spans.spans:
            start = min(span.start_time_unix_nano, LATEST_TIME)
            end = min(span.end_time_unix_nano, LATEST_TIME)
            status = span.status
            row = (
                start,
                identity(span.trace_id),
                identity(span.span_id),
                identity(span.parent_span_id),
                span.trace_state,
                span.name,
                _named(_KINDS, span.kind),
                service,
                resource,
                scope_name,
                scope_version,
                attributes_text(span.attributes),
                max(end - start, 0),
                _named(_STATUSES, status.code),
                status.message,
                *_events(span),
                *_links(span),
            )
            for append, value in zip(appends, row, strict=True):
                append(value)


def columns_of(
    requests: Sequence[ExportTraceServiceRequest], projects: Sequence[str | None]
) -> SpanColumns:
    """Lay out every span of ``requests``, each under its project."""
    columns = SpanColumns()
    for request, project in zip(requests, projects, strict=True):
        columns.add(request, project)
    return columns


def identity(data: bytes) -> str:
    """Return an id in hexadecimal; the all-zero id is no id."""
    return data.hex() if any(data) else ""


def _named(names: Sequence[str], number: int) -> str:
    return names[number] if 0 <= number < len(names) else ""


def _service(resource: Resource) -> str:
    for attribute in resource.attributes:
        if attribute.key == semconv.SERVICE_NAME:
            return attribute.value.string_value
    return ""


def _events(span: Span) -> tuple[list[int], list[str], list[dict[str, str]]]:
    events = span.events
    if not events:
        return _NONE, _NONE, _NONE
    return (
        [min(event.time_unix_nano, LATEST_TIME) for event in events],
        [event.name for event in events],
        [attributes_text(event.attributes) for event in events],
    )


def _links(span: Span) -> tuple[list[str], list[str], list[str], list[dict[str, str]]]:
    links = span.links
    if not links:
        return _NONE, _NONE, _NONE, _NONE
    return (
        [identity(link.trace_id) for link in links],
        [identity(link.span_id) for link in links],
        [link.trace_state for link in links],
        [attributes_text(link.attributes) for link in links],
    )
