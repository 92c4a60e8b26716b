"""The values of a request are counted before they are parsed, and as they would be parsed."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from google.protobuf import json_format
from google.protobuf.descriptor import FieldDescriptor
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.proto.common.v1.common_pb2 import AnyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from mast_trace_collector.otlp import density
from mast_trace_collector.otlp.density import check_values
from mast_trace_collector.otlp.errors import TooLarge
from mast_trace_collector.otlp.signals import LOGS, TRACES, Signal, encoded

FEW = settings(max_examples=40, deadline=None)


def values(message: Any) -> int:
    """Return the number of messages and repeated texts in a message, by walking it once it is parsed."""
    count = 0
    for field, content in message.ListFields():
        many = field.default_value == []
        inner = list(content) if many else [content]
        if field.type == FieldDescriptor.TYPE_MESSAGE:
            count += len(inner) + sum(map(values, inner))
        elif many:
            count += len(inner)
    return count


texts = st.text(max_size=8)
leaves = st.one_of(
    texts.map(lambda text: AnyValue(string_value=text)),
    st.integers(-9, 9).map(lambda number: AnyValue(int_value=number)),
    st.binary(max_size=8).map(lambda data: AnyValue(bytes_value=data)),
)


def nested(inner: Any) -> Any:
    def array(found: list[AnyValue]) -> AnyValue:
        value = AnyValue()
        value.array_value.values.extend(found)
        return value

    def mapping(found: dict[str, AnyValue]) -> AnyValue:
        value = AnyValue()
        for key, one in found.items():
            value.kvlist_value.values.add(key=key).value.CopyFrom(one)
        return value

    lists = st.lists(inner, max_size=4).map(array)
    return lists | st.dictionaries(texts, inner, max_size=4).map(mapping)


attributes = st.dictionaries(texts, st.recursive(leaves, nested, max_leaves=12), max_size=4)


@st.composite
def requests(draw: st.DrawFn) -> tuple[Signal, Any]:
    signal = draw(st.sampled_from([TRACES, LOGS]))
    request: Any = signal.request()
    for _ in range(draw(st.integers(0, 3))):
        resource = getattr(request, signal.resources).add()
        give(resource.resource, draw(attributes))
        scope = getattr(resource, signal.scopes).add()
        for _ in range(draw(st.integers(0, 3))):
            item = getattr(scope, signal.items).add()
            give(item, draw(attributes))
            if isinstance(item, Span):
                item.kind = 1
                item.start_time_unix_nano = draw(st.integers(0, 2**64 - 1))
                give(item.events.add(name="e"), draw(attributes))
                item.links.add(trace_id=b"t" * 16)
                item.status.code = 2
            elif isinstance(item, LogRecord):
                item.flags = 7
                item.body.CopyFrom(draw(leaves))
    return signal, request


def give(holder: Any, found: dict[str, AnyValue]) -> None:
    for key, value in found.items():
        holder.attributes.add(key=key).value.CopyFrom(value)


@FEW
@given(requests())
def test_protobuf_is_counted_as_it_is_parsed(made: tuple[Signal, Any]) -> None:
    signal, request = made
    body = request.SerializeToString()
    counted = exact(body, signal)
    assert counted == values(request)
    if counted:
        with pytest.raises(TooLarge):
            refuse(body, signal, counted - 1)
        refuse(body, signal, counted)


def exact(body: bytes, signal: Signal) -> int:
    """The count without the quick look at the bytes."""
    request: Any = signal.request.DESCRIPTOR
    return density._walk(body, request, len(body))


def refuse(body: bytes, signal: Signal, most: int) -> None:
    """As `check_values`, also for bodies too short to hold so many values."""
    if density._in_protobuf(body, signal, most) > most:
        raise TooLarge("too many")


@pytest.mark.parametrize("looked_at", [1, 7, 1000])
def test_a_part_tells_as_much_as_all(looked_at: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Dense at its end, after a text that holds no tags."""
    monkeypatch.setattr(density, "_LOOKED_AT", looked_at)
    tags, most = b"\x0a\x12", 100
    for text in range(0, 1000, 17):
        for empty in (most - 1, most, most + 1):
            body = b"y" * text + b"\x12\0" * empty
            assert density._may_hold_more(body, tags, most) is (empty > most)


@FEW
@given(requests())
def test_no_quick_look_lets_too_many_pass(made: tuple[Signal, Any]) -> None:
    """In JSON the bound is one on braces, brackets and commas; texts that hold them do not count."""
    signal, request = made
    text = json_format.MessageToJson(request, indent=None).encode()
    document = orjson.dumps([orjson.loads(text), '{"a": [1, 2, "\\\\"]}', '\\"{,'])
    structure = structure_of(orjson.loads(document))
    assert density._in_json(document, structure - 1) >= structure
    check_values(document, signal, structure, json=True)


def structure_of(value: Any) -> int:
    """Braces, brackets and commas of a document."""
    if isinstance(value, dict):
        return 1 + max(len(value) - 1, 0) + sum(map(structure_of, value.values()))
    if isinstance(value, list):
        return 1 + max(len(value) - 1, 0) + sum(map(structure_of, value))
    return 0


@given(body=st.binary(max_size=400), signal=st.sampled_from([TRACES, LOGS]))
def test_noise_is_counted_to_its_end(body: bytes, signal: Signal) -> None:
    assert 0 <= exact(body, signal) <= len(body)


def wrapped(tag: int, inner: bytes) -> bytes:
    return bytes([tag]) + encoded(len(inner)) + inner


def spans(inner: bytes) -> bytes:
    return wrapped(0x0A, wrapped(0x12, inner))


NESTED = b"\x12\x00"
for _ in range(20):
    NESTED = wrapped(0x0A, wrapped(0x2A, NESTED))

DENSE = {
    "resources": b"\x0a\x00" * 5000,
    "scopes": wrapped(0x0A, b"\x12\x00" * 5000),
    "spans": spans(b"\x12\x00" * 5000),
    "attributes": spans(wrapped(0x12, b"\x4a\x00" * 5000)),
    "events": spans(wrapped(0x12, b"\x5a\x00" * 5000)),
    "links": spans(wrapped(0x12, b"\x6a\x00" * 5000)),
    "elements": spans(wrapped(0x12, wrapped(0x4A, wrapped(0x12, wrapped(0x2A, b"\x0a\x00" * 5000))))),
    "chains": spans(wrapped(0x12, wrapped(0x4A, wrapped(0x12, wrapped(0x2A, NESTED * 200))))),
    "long tags": spans(b"\x92\x80\x00\x00" * 5000),
    "long lengths": spans(b"\x12\x80\x80\x00" * 5000),
    "after a group": b"\x0b" + b"\x0a\x00" * 5000,
    "before the end": spans(b"\x12\x00" * 5000 + b"\x12\x7f"),
}  # fmt: skip


@pytest.mark.parametrize("kind", DENSE)
def test_dense_requests_of_every_kind_are_refused(kind: str) -> None:
    with pytest.raises(TooLarge, match="values"):
        check_values(DENSE[kind], TRACES, 4000, json=False)


DENSE_JSON = {
    "objects": b'{"resourceSpans":[' + b"{}," * 5000 + b"{}]}",
    "lists": b'{"resourceSpans":[' + b"[]," * 5000 + b"[]]}",
    "numbers": b"[" + b"1," * 5000 + b"1]",
    "texts": b"[" + b'"",' * 5000 + b'""]',
    "depth": b"[" * 5000,
    "in no text": b'["\\"",' + b"{}," * 5000 + b'"]',
}


@pytest.mark.parametrize("kind", DENSE_JSON)
def test_dense_json_of_every_kind_is_refused(kind: str) -> None:
    with pytest.raises(TooLarge, match="values"):
        check_values(DENSE_JSON[kind], TRACES, 4000, json=True)


@pytest.mark.parametrize("json", [True, False])
def test_large_texts_are_no_values(json: bool) -> None:
    """Code is full of what looks like values."""
    text = 'if (a[i, j]) { s = "x\\n"; }\n' * 1000
    request = TRACES.request()
    span = request.resource_spans.add().scope_spans.add().spans.add()
    span.attributes.add(key="text").value.string_value = text
    body = json_format.MessageToJson(request).encode() if json else request.SerializeToString()
    check_values(body, TRACES, 100, json=json)
