"""Converts spans in the exports of other tools to OTLP requests."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Status

from mast_trace import semconv
from mast_trace.content import well_formed
from mast_trace.trajectory.span_messages import objects
from mast_trace_judge.transfer.formats.kinds import moment_or_zero, nanoseconds_of, whole_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue

_HEX = re.compile(r"(?:0x)?([0-9a-fA-F]+)")
_SMALLEST, _LARGEST = -(2**63), 2**63 - 1


@dataclass(frozen=True)
class ForeignSpan:
    """A span of another tool.

    Attributes:
        trace_id: as the tool spells it.
        span_id: likewise.
        parent_id: likewise; empty for a root.
        start: nanoseconds since the epoch.
        end: likewise; 0 if it is not known: it ends as it begins.
        attributes: of any type; values without a type in OTLP become JSON text.
        error: text of the error; None if there was none.
        service: the program's name.
        scope: the instrumentation's name.
        resource: further attributes of the program.
        events: name, time and attributes of each.
    """

    trace_id: str
    span_id: str
    parent_id: str
    name: str
    start: int
    end: int
    attributes: Mapping[str, Any]
    error: str | None = None
    service: str = ""
    scope: str = ""
    resource: Mapping[str, Any] = field(default_factory=dict)
    events: tuple[tuple[str, int, Mapping[str, Any]], ...] = ()


def request_of(span: ForeignSpan) -> ExportTraceServiceRequest:
    """Return a request with one span. Ids that are not hexadecimal are hashed, always alike.

    Raises:
        ValueError: the span has no id or no trace id.
    """
    request = ExportTraceServiceRequest()
    group = request.resource_spans.add()
    service = {semconv.SERVICE_NAME: span.service} if span.service else {}
    put_all(group.resource.attributes, {**span.resource, **service})
    within = group.scope_spans.add()
    within.scope.name = well_formed(span.scope)
    made = within.spans.add()
    made.trace_id = id_of(span.trace_id, 16, "trace id")
    made.span_id = id_of(span.span_id, 8, "span id")
    if span.parent_id.removeprefix("0x").strip("0"):
        made.parent_span_id = id_of(span.parent_id, 8, "parent id")
    made.name = well_formed(span.name)
    made.start_time_unix_nano = span.start
    made.end_time_unix_nano = max(span.start, span.end)
    put_all(made.attributes, span.attributes)
    if span.error is not None:
        made.status.code = Status.STATUS_CODE_ERROR
        made.status.message = well_formed(span.error)
    for name, time, attributes in span.events:
        event = made.events.add(name=well_formed(name), time_unix_nano=time)
        put_all(event.attributes, attributes)
    return request


def id_of(text: str, size: int, what: str) -> bytes:
    """Return an id of a number of bytes: the one that the text spells, else one derived from it.

    Raises:
        ValueError: the text is empty.
    """
    if not text.strip("0x- "):
        raise ValueError(f"a span has no {what}")
    digits = _HEX.fullmatch(text.replace("-", ""))
    if digits and len(digits[1]) == 2 * size:
        return bytes.fromhex(digits[1])
    if digits and size == 16 and len(digits[1]) == 16:  # half an id, as older tracers have it
        return bytes.fromhex(digits[1].zfill(32))
    return hashlib.sha256(well_formed(text).encode()).digest()[:size]


def hex_of(text: str, size: int) -> str:
    """Return an id of a number of bytes that is spelt in base64, as JSON of protobuf has it, in hexadecimal."""
    try:
        data = base64.b64decode(text, validate=True)
    except ValueError:
        return text
    return data.hex() if len(data) == size else text


def put_all(attributes: Any, values: Mapping[str, Any]) -> None:
    """Add attributes to a repeated field; those without a value are left out."""
    for key, value in values.items():
        if value is not None:
            added: KeyValue = attributes.add(key=well_formed(str(key)))
            _put(added.value, value)


def _put(to: AnyValue, value: Any) -> None:
    if isinstance(value, str):
        to.string_value = well_formed(value)
    elif isinstance(value, bool):
        to.bool_value = value
    elif isinstance(value, int) and _SMALLEST <= value <= _LARGEST:
        to.int_value = value
    elif isinstance(value, float):
        to.double_value = value
    elif isinstance(value, list | tuple) and all(isinstance(each, str) for each in value):
        to.array_value.SetInParent()
        for each in value:
            to.array_value.values.add().string_value = well_formed(each)
    else:
        to.string_value = well_formed(whole_text(value))


def span_of_sdk(
    value: Mapping[str, Any],
    attributes: Mapping[str, Any],
    error: str | None,
    *,
    scope: str = "",
    resource: Mapping[str, Any] = MappingProxyType({}),
) -> ForeignSpan:
    """Return a span that OpenTelemetry's SDK, or who follows it, has written in JSON."""
    return ForeignSpan(
        trace_id=str(value["context"].get("trace_id") or ""),
        span_id=str(value["context"].get("span_id") or ""),
        parent_id=str(value.get("parent_id") or ""),
        name=str(value.get("name") or ""),
        start=nanoseconds_of(value.get("start_time"), "start_time"),
        end=moment_or_zero(value.get("end_time")),
        attributes=attributes,
        error=error,
        service=str(resource.get(semconv.SERVICE_NAME) or ""),
        scope=scope,
        resource=resource,
        events=tuple(
            (
                str(event.get("name") or ""),
                moment_or_zero(event.get("timestamp")),
                event["attributes"] if isinstance(event.get("attributes"), dict) else {},
            )
            for event in objects(loaded(value.get("events")))
        ),
    )


def loaded(value: Any) -> Any:
    """Return the value of a JSON text; other values, and other texts, unchanged."""
    if isinstance(value, str) and value[:1] in {"{", "[", '"'}:
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value


def at(value: Any, path: str) -> Any:
    """Return what stands at a path of keys and places, in JSON texts as well; None where nothing does."""
    for key in path.split("."):
        inner = loaded(value)
        if isinstance(inner, list):
            value = inner[int(key)] if key.isdecimal() and int(key) < len(inner) else None
        else:
            value = inner.get(key) if isinstance(inner, dict) else None
    return loaded(value)
