"""Requests of good items, and ways of spoiling one thing in them."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

from google.protobuf import json_format
from google.protobuf.descriptor import FieldDescriptor
from hypothesis import strategies as st
from opentelemetry.proto.common.v1.common_pb2 import AnyValue

from mast_trace_collector.otlp.signals import TRACES, Signal, encoded
from mast_trace_collector.storage.log_writer import _rows
from mast_trace_collector.storage.span_columns import columns_of

if TYPE_CHECKING:
    from collections.abc import Iterator

NOW = 1_700_000_000_000_000_000
MARKER = b"SPOILED"
NO_TEXT = b"\xff\xc0\xaf\xed\xa0\x80\xfe"
"""As long as the marker: no start, a slash that is too long, half a character, no start."""
_IDS = {"traceId", "spanId", "parentSpanId"}


def whole_request(signal: Signal, *numbers: int, maps: bool = True) -> Any:
    """A request in which every field that is stored has a value; an item has its number in its ids.

    Without maps the database can read the request itself.
    """
    request: Any = signal.request()
    resource = getattr(request, signal.resources).add(schema_url="https://example.com/1")
    _describe(resource.resource.attributes)
    scope = getattr(resource, signal.scopes).add(schema_url="https://example.com/2")
    scope.scope.name, scope.scope.version = "tests", "1.0"
    _describe(scope.scope.attributes)
    items = getattr(scope, signal.items)
    for number in numbers:
        item = items.add(trace_id=b"t" * 16, span_id=number.to_bytes(8, "big"))
        _describe(item.attributes)
        if signal is TRACES:
            _fill_span(item)
        else:
            _fill_record(item)
    if not maps:
        _remove_maps(request)
    return request


def _describe(attributes: Any) -> None:
    attributes.add(key="text").value.string_value = "a"
    attributes.add(key="number").value.double_value = 0.5
    attributes.add(key="list").value.array_value.values.add(string_value="b")
    inner = attributes.add(key="map").value.kvlist_value.values.add(key="c")
    inner.value.string_value = "d"


def _remove_maps(message: Any) -> None:
    for field, value in message.ListFields():
        if field.name == "attributes":
            del value[3:]
        elif field.message_type is not None:
            for inner in value if field.default_value == [] else [value]:
                _remove_maps(inner)


def _fill_span(span: Any) -> None:
    span.name, span.kind, span.trace_state = "chat model", 3, "a=b"
    span.parent_span_id = b"p" * 8
    span.start_time_unix_nano, span.end_time_unix_nano = NOW, NOW + 10**9
    span.status.code, span.status.message = 2, "broke"
    _describe(span.events.add(name="event", time_unix_nano=NOW).attributes)
    link = span.links.add(trace_id=b"l" * 16, span_id=b"m" * 8, trace_state="c=d")
    _describe(link.attributes)


def _fill_record(record: Any) -> None:
    record.time_unix_nano = record.observed_time_unix_nano = NOW
    record.severity_number, record.severity_text = 9, "INFO"
    record.event_name = "event"
    record.body.CopyFrom(AnyValue(string_value="words"))


def items_of(request: Any, signal: Signal) -> Any:
    """The items of a request with one resource and one scope."""
    return getattr(getattr(getattr(request, signal.resources)[0], signal.scopes)[0], signal.items)


def texts_in(message: Any, path: str = "") -> Iterator[tuple[str, Any, str]]:
    """Path, holder and name of every text in a message that has a value."""
    for field, value in message.ListFields():
        place = f"{path}.{field.name}"
        if field.type == FieldDescriptor.TYPE_STRING:
            yield place, message, field.name
        elif field.message_type is not None:
            many = field.default_value == []
            for number, inner in enumerate(value if many else [value]):
                yield from texts_in(inner, f"{place}[{number}]")


def as_json(request: Any) -> Any:
    """The document of a request as OTLP writes it: ids in hexadecimal."""
    return _hexadecimal(json_format.MessageToDict(request))


def _hexadecimal(node: Any) -> Any:
    if isinstance(node, list):
        return [_hexadecimal(item) for item in node]
    if not isinstance(node, dict):
        return node
    return {
        key: base64.b64decode(item).hex() if key in _IDS else _hexadecimal(item)
        for key, item in node.items()
    }


def with_item(request: Any, signal: Signal, index: int, item: bytes) -> bytes:
    """The request in protobuf, with other bytes in the place of one of its items."""
    kept = signal.request.FromString(request.SerializeToString())
    items = [each.SerializeToString() for each in items_of(kept, signal)]
    items[index] = item
    del items_of(kept, signal)[:]
    resource = getattr(kept, signal.resources)[0]
    scope = getattr(resource, signal.scopes)[0]
    body = scope.SerializeToString() + b"".join(framed(2, each) for each in items)
    del getattr(resource, signal.scopes)[:]
    return framed(1, resource.SerializeToString() + framed(2, body))


def framed(number: int, data: bytes) -> bytes:
    """A message or a text as the field of that number."""
    return encoded(number << 3 | 2) + encoded(len(data)) + data


def deep(levels: int) -> bytes:
    """A value of so many arrays in arrays, as an attribute of a span or a record."""
    value = b""
    for _ in range(levels):
        value = framed(5, framed(1, value))
    return framed(2, value)


def rows_of(payload: bytes, signal: Signal) -> dict[str, tuple[Any, ...]]:
    """The rows of a request as they are stored, by span id."""
    request: Any = signal.request.FromString(payload)
    if signal is TRACES:
        rows = list(zip(*columns_of([request], [None]).columns, strict=True))
    else:
        rows = list(_rows(request))
    return {row[2]: row for row in rows}


@st.composite
def damaged(draw: st.DrawFn, body: bytes) -> bytes:
    """A valid body with some of its bytes changed, removed, repeated or replaced by noise."""
    data = bytearray(body)
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(data)))
        end = min(len(data), start + draw(st.integers(0, 12)))
        data[start:end] = draw(
            st.one_of(st.binary(max_size=12), st.just(bytes(data[start:end]) * 2))
        )
    return bytes(data)
