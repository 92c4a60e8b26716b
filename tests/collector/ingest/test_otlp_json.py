"""OTLP/JSON becomes the same message as its protobuf form, in every spelling that senders use."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest
from google.protobuf import json_format
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from spoiled import as_json

from mast_trace_collector.otlp.errors import RequestError
from mast_trace_collector.otlp.json_decoding import parse_json
from mast_trace_collector.otlp.signals import TRACES

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
UINT64 = st.integers(0, 2**64 - 1)
SCALARS = st.one_of(
    st.builds(lambda value: {"string_value": value}, TEXT),
    st.builds(lambda value: {"bool_value": value}, st.booleans()),
    st.builds(lambda value: {"int_value": value}, st.integers(-(2**63), 2**63 - 1)),
    st.builds(lambda value: {"double_value": value}, st.floats(allow_nan=False)),
    st.builds(lambda value: {"bytes_value": value}, st.binary(max_size=20)),
    st.just({}),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.builds(lambda items: {"array_value": {"values": items}}, st.lists(inner, max_size=3)),
        st.builds(
            lambda items: {
                "kvlist_value": {"values": [{"key": key, "value": item} for key, item in items]}
            },
            st.lists(st.tuples(TEXT, inner), max_size=3),
        ),
    ),
    max_leaves=6,
)
ATTRIBUTES = st.lists(st.fixed_dictionaries({"key": TEXT, "value": VALUES}), max_size=4)
SPANS = st.fixed_dictionaries(
    {},
    optional={
        "name": TEXT,
        "trace_id": st.binary(min_size=16, max_size=16),
        "span_id": st.binary(min_size=8, max_size=8),
        "parent_span_id": st.binary(min_size=8, max_size=8),
        "flags": st.integers(0, 2**32 - 1),
        "kind": st.integers(0, 5),
        "start_time_unix_nano": UINT64,
        "attributes": ATTRIBUTES,
        "status": st.fixed_dictionaries({"message": TEXT, "code": st.integers(0, 2)}),
        "events": st.lists(
            st.fixed_dictionaries(
                {"name": TEXT, "time_unix_nano": UINT64, "attributes": ATTRIBUTES}
            ),
            max_size=2,
        ),
        "links": st.lists(
            st.fixed_dictionaries({"trace_id": st.binary(min_size=16, max_size=16)}), max_size=2
        ),
    },
)
REQUESTS = st.builds(
    lambda spans, attributes: ExportTraceServiceRequest(
        resource_spans=[{"resource": {"attributes": attributes}, "scope_spans": [{"spans": spans}]}]
    ),
    st.lists(SPANS, max_size=3),
    ATTRIBUTES,
)


def parsed(document: Any) -> ExportTraceServiceRequest:
    return parse_json(json.dumps(document).encode(), TRACES, 24)


def span_of(**fields: Any) -> dict[str, Any]:
    return {"resourceSpans": [{"scopeSpans": [{"spans": [fields]}]}]}


def parsed_span(**fields: Any) -> Any:
    return parsed(span_of(**fields)).resource_spans[0].scope_spans[0].spans[0]


@given(request_=REQUESTS)
def test_json_and_protobuf_give_the_same_message(request_: ExportTraceServiceRequest) -> None:
    assert parsed(as_json(request_)) == request_


@given(request_=REQUESTS)
def test_protobuf_field_names_are_understood_too(request_: ExportTraceServiceRequest) -> None:
    """With them, and with ids in base64, it is protobuf's own JSON."""
    document = json_format.MessageToDict(request_, preserving_proto_field_name=True)
    assert parsed(document) == request_


def test_the_specification_s_own_spellings() -> None:
    span = parsed_span(
        traceId="5B8EFFF798038103D269B633813FC60C",
        spanId="eee19b7ec3c1b174",
        parentSpanId="",
        kind=2,
        startTimeUnixNano="1544712660000000000",
        endTimeUnixNano=1544712661000000000,
        attributes=[{"key": "my.attr", "value": {"intValue": "10"}}],
    )
    assert span.trace_id.hex() == "5b8efff798038103d269b633813fc60c"
    assert span.span_id.hex() == "eee19b7ec3c1b174"
    assert span.parent_span_id == b""
    assert span.start_time_unix_nano == 1544712660000000000
    assert span.attributes[0].value.int_value == 10


@pytest.mark.parametrize("kind", ["SPAN_KIND_SERVER", 2, "2", 2.0])
def test_enums_by_name_and_number(kind: Any) -> None:
    assert parsed_span(kind=kind).kind == 2


def test_unknown_fields_and_nulls_are_ignored_and_unknown_attributes_kept() -> None:
    span = parsed_span(
        name="x", invented={"a": [1]}, status=None, attributes=[{"key": "never.seen", "value": {}}]
    )
    assert span.name == "x"
    assert span.attributes[0].key == "never.seen"


def nested(depth: int) -> dict[str, Any]:
    value: dict[str, Any] = {"stringValue": "core"}
    for _ in range(depth - 1):
        value = {"kvlistValue": {"values": [{"key": "k", "value": value}]}}
    return span_of(attributes=[{"key": "deep", "value": value}])


def test_nesting_up_to_the_limit_can_be_read_back_as_protobuf() -> None:
    request = parse_json(json.dumps(nested(30)).encode(), TRACES, 30)
    assert ExportTraceServiceRequest.FromString(request.SerializeToString()) == request


@pytest.mark.parametrize("depth", [25, 100])
def test_deeper_nesting_is_refused(depth: int) -> None:
    with pytest.raises(RequestError, match="nested deeper than 24"):
        parsed(nested(depth))


def test_a_bomb_of_brackets_is_refused() -> None:
    with pytest.raises(RequestError):
        parse_json(b"[" * 1_000_000, TRACES, 24)


@pytest.mark.parametrize(
    "document",
    [
        [],
        "text",
        {"resourceSpans": {}},
        {"resourceSpans": [3]},
        span_of(name=3),
        span_of(traceId="xyz"),
        span_of(traceId=5),
        span_of(startTimeUnixNano=-1),
        span_of(startTimeUnixNano="1e400"),
        span_of(startTimeUnixNano=1.5),
        span_of(startTimeUnixNano=2**64),
        span_of(kind="SPAN_KIND_NONSENSE"),
        span_of(kind=2**31),
        span_of(kind=True),
        span_of(attributes=[{"key": "x", "value": {"boolValue": 1}}]),
        span_of(attributes=[{"key": "x", "value": {"bytesValue": "!"}}]),
        span_of(attributes={"key": "x"}),
        span_of(name="\ud800"),
        float("nan"),
    ],
)
def test_what_is_no_request_is_refused(document: Any) -> None:
    with pytest.raises(RequestError):
        parsed(document)


def test_half_a_character_names_no_enum() -> None:
    """Protobuf's own table leaves an error behind, which the next call raises: without a profile, in a new process alone."""
    sys.setprofile(lambda *_: None)
    try:
        with pytest.raises(RequestError, match="is no integer"):
            parsed(span_of(kind="\ud800"))
    finally:
        sys.setprofile(None)


@pytest.mark.parametrize("body", [b"", b"{", b"\xff", b'{"a":"\\x"}', b"{'a': 1}"])
def test_what_is_no_json_is_refused(body: bytes) -> None:
    with pytest.raises(RequestError, match="no JSON"):
        parse_json(body, TRACES, 24)
