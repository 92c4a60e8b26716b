"""Formats of tracing alone: OTLP in JSON, the output of the console exporter, and traces of Tempo, Jaeger and Zipkin."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from mast_trace.trajectory.span_messages import objects
from mast_trace_collector.otlp.errors import RequestError
from mast_trace_collector.otlp.json_decoding import parse_json
from mast_trace_collector.otlp.signals import TRACES
from mast_trace_judge.transfer.formats.foreign_spans import (
    ForeignSpan,
    hex_of,
    loaded,
    request_of,
    span_of_sdk,
)
from mast_trace_judge.transfer.formats.kinds import (
    Format,
    is_record,
    object_in,
    objects_in,
    word_in,
)

_NESTING = 64
_IDS = ("traceId", "trace_id", "spanId", "span_id", "parentSpanId", "parent_span_id")


def request_from_protobuf(data: bytes) -> ExportTraceServiceRequest:
    """Read an OTLP request in protobuf.

    Raises:
        ValueError: it is none, or holds no spans.
    """
    try:
        request = ExportTraceServiceRequest.FromString(data)
    except DecodeError as error:
        raise ValueError("it is binary data, which no trace format reads") from error
    if not any(scope.spans for each in request.resource_spans for scope in each.scope_spans):
        raise ValueError("it holds no spans")
    return request


def _resources(value: Any) -> Any:
    """Return the spans of an answer of Grafana Tempo, which has OTLP under a key of its own; else nothing."""
    if _is_bare(value):
        return [{"scopeSpans": [{"spans": [value]}]}]
    inner = value["trace"] if is_record(value, "trace") else value
    if is_record(inner, "batches"):
        return inner["batches"]
    return inner.get("resourceSpans") if inner is not value and isinstance(inner, dict) else None


def _is_bare(value: Any) -> bool:
    """Return whether a value is a span of OTLP with nothing around it, in either spelling of its names."""
    ids, times = {"spanId", "span_id"}, {"startTimeUnixNano", "start_time_unix_nano"}
    return (
        isinstance(value, dict)
        and bool(value.keys() & ids and value.keys() & times)
        and isinstance(value.get("attributes", []), list)
    )


def _read_tempo(value: Any, name: str) -> Iterator[ExportTraceServiceRequest]:
    resources = []
    for resource in objects(_resources(value)):
        scopes = objects_in(resource, "scopeSpans") or objects_in(
            resource, "instrumentationLibrarySpans"
        )
        resources.append(
            {
                "resource": resource.get("resource", {}),
                "scopeSpans": [
                    {
                        "scope": scope.get("scope", scope.get("instrumentationLibrary", {})),
                        "spans": [_with_hex_ids(span) for span in objects_in(scope, "spans")],
                    }
                    for scope in scopes
                ],
            }
        )
    yield from _read_otlp({"resourceSpans": resources}, name)


def _with_hex_ids(span: dict[str, Any]) -> dict[str, Any]:
    return {
        key: hex_of(str(each), 16 if "trace" in key else 8) if key in _IDS and each else each
        for key, each in span.items()
        if key != "links" and each is not None
    }


TEMPO = Format(
    name="tempo",
    title="Grafana Tempo trace",
    recognised="`batches` (or `trace`) with `resource` and `scopeSpans`, or spans of OTLP with nothing around them",
    read=_read_tempo,
    record=lambda value: any(
        "scopeSpans" in each or "instrumentationLibrarySpans" in each
        for each in objects(_resources(value))
    ),
)


def _read_otlp(value: dict[str, Any], _: str) -> Iterator[ExportTraceServiceRequest]:
    try:
        request = parse_json(json.dumps(value).encode(), TRACES, _NESTING)
    except RequestError as error:
        raise ValueError(str(error).removeprefix("the body is no OTLP traces request: ")) from None
    yield request_from_protobuf(request.SerializeToString())


OTLP = Format(
    name="otlp",
    title="OTLP",
    recognised="`resourceSpans`, as the collector's file exporter writes them; protobuf as well",
    read=_read_otlp,
    record=lambda value: is_record(value, "resourceSpans") or is_record(value, "resource_spans"),
)


def _read_console(value: dict[str, Any], _: str) -> Iterator[ExportTraceServiceRequest]:
    status, resource = value.get("status") or {}, value.get("resource") or {}
    failed = status.get("status_code") == "ERROR"
    error = str(status.get("description") or "") if failed else None
    of_program = object_in(resource, "attributes")
    yield request_of(span_of_sdk(value, value.get("attributes") or {}, error, resource=of_program))


def _is_console(value: Any) -> bool:
    return (
        is_record(value, "context", "start_time", "kind")
        and is_record(value["context"], "trace_id", "span_id")
        and str(value["kind"]).startswith("SpanKind.")
    )


CONSOLE = Format(
    name="otel-console",
    title="OpenTelemetry console spans",
    recognised="`context` and a `kind` such as `SpanKind.INTERNAL`, as `ConsoleSpanExporter` prints",
    read=_read_console,
    record=_is_console,
)


# -- Jaeger and Zipkin -----------------------------------------------------------------------------

_LATEST = 2**53
_ERROR = ("otel.status_description", "error.message", "exception.message")


def _read_jaeger(value: dict[str, Any], _: str) -> Iterator[ExportTraceServiceRequest]:
    known = object_in(value, "processes")
    spans = objects_in(value, "spans")
    if not spans:
        raise ValueError("it holds no spans")
    for span in spans:
        process = span.get("process") or known.get(str(span.get("processID")))
        yield request_of(_jaeger_span(span, process if isinstance(process, dict) else {}))


def _jaeger_span(span: Mapping[str, Any], process: Mapping[str, Any]) -> ForeignSpan:
    name = str(span.get("operationName") or "")
    start = _microseconds(span.get("startTime"), f"startTime of span {name!r}")
    tags = _tags(span, "tags")
    failed = tags.get("otel.status_code") == "ERROR" or tags.get("error") in {True, "true"}
    return ForeignSpan(
        trace_id=str(span.get("traceID") or ""),
        span_id=str(span.get("spanID") or ""),
        parent_id=_jaeger_parent(span),
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


def _jaeger_parent(span: Mapping[str, Any]) -> str:
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
    read=_read_jaeger,
    keys=("traceID", "spans", "processes"),
    record=lambda value: is_record(value, "traceID", "spans") and isinstance(value["spans"], list),
)
