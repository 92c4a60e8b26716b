"""Traces that Jaeger's web view and query API give as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mast_trace_judge.transfer.formats.foreign_spans import ForeignSpan, loaded, request_of
from mast_trace_judge.transfer.formats.kinds import Format, is_record, objects_in, word_in

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

_LATEST = 2**53
_ERROR = ("otel.status_description", "error.message", "exception.message")


def _read(value: dict[str, Any], _: str) -> Iterator[ExportTraceServiceRequest]:
    processes = value.get("processes")
    known = processes if isinstance(processes, dict) else {}
    spans = objects_in(value, "spans")
    if not spans:
        raise ValueError("it holds no spans")
    for span in spans:
        process = span.get("process") or known.get(str(span.get("processID")))
        yield request_of(_span(span, process if isinstance(process, dict) else {}))


def _span(span: Mapping[str, Any], process: Mapping[str, Any]) -> ForeignSpan:
    name = str(span.get("operationName") or "")
    start = _microseconds(span.get("startTime"), f"startTime of span {name!r}")
    tags = _tags(span, "tags")
    failed = tags.get("otel.status_code") == "ERROR" or tags.get("error") in {True, "true"}
    return ForeignSpan(
        trace_id=str(span.get("traceID") or ""),
        span_id=str(span.get("spanID") or ""),
        parent_id=_parent(span),
        name=name,
        start=start,
        end=start + _microseconds(span.get("duration", 0), f"duration of span {name!r}"),
        attributes=tags,
        error=next((str(tags[key]) for key in _ERROR if key in tags), "") if failed else None,
        service=str(process.get("serviceName") or ""),
        scope=str(tags.get("otel.scope.name") or tags.get("otel.library.name") or ""),
        resource=_tags(process, "tags"),
        events=tuple(
            (
                str(fields.pop("event", "") or "log"),
                _microseconds(log.get("timestamp", 0), "timestamp of a log"),
                fields,
            )
            for log in objects_in(span, "logs")
            for fields in [_tags(log, "fields")]
        ),
    )


def _read_zipkin(value: dict[str, Any], _: str) -> Iterator[ExportTraceServiceRequest]:
    name = str(value.get("name") or "")
    start = _microseconds(value["timestamp"], f"timestamp of span {name!r}")
    tags = value["tags"] if isinstance(value.get("tags"), dict) else {}
    yield request_of(
        ForeignSpan(
            trace_id=str(value["traceId"]),
            span_id=str(value["id"]),
            parent_id=str(value.get("parentId") or ""),
            name=name,
            start=start,
            end=start + _microseconds(value.get("duration", 0), f"duration of span {name!r}"),
            attributes=tags,
            error=str(tags["error"]) if "error" in tags else None,
            service=word_in(value.get("localEndpoint"), "serviceName"),
            scope=str(tags.get("otel.scope.name") or tags.get("otel.library.name") or ""),
        )
    )


ZIPKIN = Format(
    name="zipkin",
    title="Zipkin spans",
    recognised="`traceId`, `id`, `timestamp`, and `tags` or `localEndpoint`, as its API and exporters write them",
    read=_read_zipkin,
    keys=("traceId", "id", "timestamp", "localEndpoint"),
    record=lambda value: (
        is_record(value, "traceId", "id", "timestamp")
        and bool(value.keys() & {"tags", "localEndpoint"})
        and "type" not in value
    ),
)


def _parent(span: Mapping[str, Any]) -> str:
    """Return the span that this one is a child of, in the same trace."""
    for reference in objects_in(span, "references"):
        if reference.get("refType") == "CHILD_OF":
            return str(reference.get("spanID") or "")
    return str(span.get("parentSpanID") or "")


def _tags(holder: Mapping[str, Any], key: str) -> dict[str, Any]:
    """Return tags as attributes; arrays, which Jaeger keeps as JSON text, are arrays again."""
    found: dict[str, Any] = {}
    for tag in objects_in(holder, key):
        value = tag.get("value")
        listed = loaded(value) if isinstance(value, str) and value[:1] == "[" else None
        texts = isinstance(listed, list) and all(isinstance(each, str) for each in listed)
        found[str(tag.get("key"))] = listed if texts else value
    return found


def _microseconds(value: Any, what: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < _LATEST:
        raise ValueError(f"{what} is no number of microseconds: {str(value)[:40]!r}")
    return int(value * 1000)


JAEGER = Format(
    name="jaeger",
    title="Jaeger traces",
    recognised="`traceID`, `spans` and `processes`, also under `data`",
    read=_read,
    keys=("traceID", "spans", "processes"),
    record=lambda value: is_record(value, "traceID", "spans") and isinstance(value["spans"], list),
)
