"""OTLP requests as the span records that a store would return."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mast_trace.trajectory import SpanRecord, with_events

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
    from opentelemetry.proto.common.v1.common_pb2 import AnyValue

_STATUS = {0: "Unset", 1: "Ok", 2: "Error"}


def records_of(requests: Iterable[ExportTraceServiceRequest]) -> Iterator[SpanRecord]:
    for request in requests:
        for resource in request.resource_spans:
            about = {each.key: value_of(each.value) for each in resource.resource.attributes}
            for scope in resource.scope_spans:
                for span in scope.spans:
                    yield SpanRecord(
                        trace_id=span.trace_id.hex(),
                        span_id=span.span_id.hex(),
                        parent_span_id=span.parent_span_id.hex(),
                        name=span.name,
                        start=span.start_time_unix_nano,
                        end=span.end_time_unix_nano,
                        attributes=with_events(
                            {e.key: value_of(e.value) for e in span.attributes},
                            [
                                (event.name, {e.key: value_of(e.value) for e in event.attributes})
                                for event in span.events
                            ],
                        ),
                        status=_STATUS[span.status.code],
                        status_message=span.status.message,
                        service=about.get("service.name", ""),
                        scope=scope.scope.name,
                    )


def value_of(value: AnyValue) -> Any:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [value_of(each) for each in value.array_value.values]
    return getattr(value, kind) if kind else None
