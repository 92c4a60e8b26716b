"""Converts OTLP spans to rows of ``otel_traces``, as the OpenTelemetry Collector's exporter does.

Renders OTLP values as the text that the OpenTelemetry Collector's exporters store.

The rules are those of the Collector's ``pcommon.Value.AsString``.
"""

from __future__ import annotations

import math
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import orjson

from mast_trace import semconv

if TYPE_CHECKING:
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
    from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
    from opentelemetry.proto.resource.v1.resource_pb2 import Resource
    from opentelemetry.proto.trace.v1.trace_pb2 import ScopeSpans, Span

_SMALLEST_PLAIN = 1e-6
_LARGEST_PLAIN = 1e21
"""JSON writes numbers outside of these with an exponent."""

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


def attributes_text(attributes: Iterable[KeyValue]) -> dict[str, str]:
    """Return each attribute as text; of duplicate keys the last wins."""
    out = {}
    for attribute in attributes:
        value = attribute.value
        # The common case first: nine of ten.
        text = value.string_value
        out[attribute.key] = text or value_text(value)
    return out


def value_text(value: AnyValue) -> str:
    """Return a value as text: scalars plain, bytes in base64, lists and maps as JSON."""
    render = _TEXTS.get(value.WhichOneof("value"))
    return render(value) if render else ""


def double_text(number: float) -> str:
    """Write a number as JavaScript does: shortest digits, no point after whole numbers."""
    if not math.isfinite(number):
        name = "NaN" if math.isnan(number) else "+Inf" if number > 0 else "-Inf"
        return f"json: unsupported value: {name}"
    text = repr(number)
    if number == 0 or _SMALLEST_PLAIN <= abs(number) < _LARGEST_PLAIN:
        return (format(Decimal(text), "f") if "e" in text else text).removesuffix(".0")
    mantissa, exponent = text.split("e")
    sign = "-" if exponent.startswith("-") else "+"
    return f"{mantissa}e{sign}{exponent.lstrip('+-0')}"


def _plain(value: AnyValue) -> Any:
    """Return a value in a form that `orjson` accepts."""
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [_plain(item) for item in value.array_value.values]
    if kind == "kvlist_value":
        return {item.key: _plain(item.value) for item in value.kvlist_value.values}
    if kind == "double_value":
        number = value.double_value
        return int(number) if number.is_integer() and abs(number) < 2**63 else number
    if kind == "bytes_value":
        return b64encode(value.bytes_value).decode("ascii")
    return None if kind is None or kind not in _TEXTS else getattr(value, kind)


def _json(value: AnyValue) -> str:
    text = orjson.dumps(_plain(value), option=orjson.OPT_SORT_KEYS).decode("utf-8")
    # These end lines in JavaScript; the other writers of JSON escape them.
    return text.replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


# Other kinds are indexes into a dictionary that only profiles have.
_TEXTS: Mapping[str | None, Callable[[AnyValue], str]] = {
    "string_value": lambda value: value.string_value,
    "int_value": lambda value: str(value.int_value),
    "double_value": lambda value: double_text(value.double_value),
    "bool_value": lambda value: "true" if value.bool_value else "false",
    "bytes_value": lambda value: b64encode(value.bytes_value).decode("ascii"),
    "array_value": _json,
    "kvlist_value": _json,
}


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
