"""Requests: the same messages as OpenTelemetry's own encoder makes, whatever the spans hold."""

from __future__ import annotations

import logging

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link, SpanContext, SpanKind, Status, StatusCode, TraceFlags
from opentelemetry.trace.span import TraceState

from mast_trace.delivery import encoding
from mast_trace.delivery.encoding import encode, request_of

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
NUMBERS = st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False)
ONE = TEXT | st.booleans() | NUMBERS
ATTRIBUTES = st.dictionaries(
    TEXT.filter(bool), ONE | st.lists(ONE, max_size=3).map(tuple), max_size=5
)
CONTEXTS = st.builds(
    SpanContext,
    trace_id=st.integers(1, 2**128 - 1),
    span_id=st.integers(1, 2**64 - 1),
    is_remote=st.booleans(),
    trace_flags=st.sampled_from([TraceFlags(0), TraceFlags(1)]),
    trace_state=st.sampled_from([None, TraceState(), TraceState([("vendor", "a"), ("b", "c")])]),
)
TIMES = st.integers(0, 2**63)
RESOURCES = [Resource({"service.name": "a"}, "https://a"), Resource({"numbers": (1, 2)})]
SCOPES = [
    None,
    InstrumentationScope("plain"),
    InstrumentationScope("mast_trace.x", "1", "https://b", {"more": True}),
]
STATUSES = st.builds(Status, st.sampled_from([StatusCode.OK, StatusCode.UNSET])) | st.builds(
    Status, st.just(StatusCode.ERROR), st.none() | TEXT
)
SPANS = st.builds(
    ReadableSpan,
    name=TEXT,
    context=CONTEXTS,
    parent=st.none() | CONTEXTS,
    resource=st.sampled_from(RESOURCES),
    attributes=st.none() | ATTRIBUTES,
    events=st.lists(st.builds(Event, TEXT, ATTRIBUTES, TIMES), max_size=2).map(tuple),
    links=st.lists(st.builds(Link, CONTEXTS, ATTRIBUTES), max_size=2).map(tuple),
    kind=st.sampled_from(list(SpanKind)),
    status=STATUSES,
    start_time=st.none() | TIMES,
    end_time=st.none() | TIMES,
    instrumentation_scope=st.sampled_from(SCOPES),
)


@given(st.lists(SPANS, max_size=5))
@settings(deadline=None)
def test_the_request_is_that_of_opentelemetry(spans) -> None:
    """Message for message, and without the help of that encoder."""
    assert encoding._written(spans) == encode_spans(spans)
    assert ExportTraceServiceRequest.FromString(encode(spans)) == encode_spans(spans)


@pytest.mark.parametrize(
    "value", [b"bytes", {"a": 1}, None, (None,), ({"a": ()},), type("Text", (str,), {})("x"), 2**70]
)
def test_values_that_mast_trace_does_not_write_are_left_to_that_encoder(value, caplog) -> None:
    """Nothing of the other spans is lost, and whatever that encoder knows is kept."""
    caplog.set_level(logging.CRITICAL)
    spans = [span({"odd": value, "even": 1}), span({"text": "b"})]
    assert request_of(spans) == encode_spans(spans)
    (first, second) = request_of(spans).resource_spans[0].scope_spans[0].spans
    assert "even" in {pair.key for pair in first.attributes}
    assert [pair.value.string_value for pair in second.attributes] == ["b"]


def test_a_span_that_nobody_can_encode_is_none(caplog) -> None:
    caplog.set_level(logging.CRITICAL)
    lone = ReadableSpan(name="\ud800", context=span({}).context, resource=RESOURCES[0])
    assert encode([lone]) is None


def span(attributes) -> ReadableSpan:
    """A span with these attributes."""
    return ReadableSpan(
        name="x",
        context=SpanContext(1, 2, is_remote=False),
        resource=RESOURCES[0],
        attributes=attributes,
        start_time=1,
        end_time=2,
    )
