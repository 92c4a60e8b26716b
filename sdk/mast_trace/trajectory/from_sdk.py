"""Converts spans of the OpenTelemetry SDK to `SpanRecord`, without a store between."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opentelemetry.trace import format_span_id, format_trace_id

from mast_trace.trajectory.model import SpanRecord
from mast_trace.trajectory.sources import with_events

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan

_STATUS = {"UNSET": "Unset", "OK": "Ok", "ERROR": "Error"}


def span_record(span: ReadableSpan) -> SpanRecord:
    """Return the record that a span store would return for an ended span."""
    context = span.context
    start = span.start_time or 0
    scope = span.instrumentation_scope
    return SpanRecord(
        trace_id=format_trace_id(context.trace_id),
        span_id=format_span_id(context.span_id),
        parent_span_id=format_span_id(span.parent.span_id) if span.parent else "",
        name=span.name,
        start=start,
        end=span.end_time or start,
        attributes=with_events(
            dict(span.attributes or {}), ((e.name, e.attributes or {}) for e in span.events)
        ),
        status=_STATUS[span.status.status_code.name],
        status_message=span.status.description or "",
        service=str(span.resource.attributes.get("service.name", "")),
        scope=scope.name if scope else "",
    )
