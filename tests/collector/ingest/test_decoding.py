"""Any request is decoded within its limits or refused with a reason."""

from __future__ import annotations

import contextlib
import json
import os
import time
from typing import Any

import pytest
from google.protobuf import json_format
from hypothesis import given, settings
from hypothesis import strategies as st
from ingest_support import body_of, request_of
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span
from spoiled import damaged

from mast_trace_collector.otlp.decoding import RequestLimits, decode
from mast_trace_collector.otlp.errors import RequestError, TooLarge
from mast_trace_collector.otlp.signals import LOGS, TRACES, encoded

LIMITS = RequestLimits(max_nesting=24, max_attributes=10)
# A longer run: MAST_TRACE_TEST_FUZZ=1000000.
EXAMPLES = int(os.environ.get("MAST_TRACE_TEST_FUZZ", "500"))
VALID = body_of("invoke_agent planner", "chat model", attributes=3)
VALID_JSON = json_format.MessageToJson(request_of("chat model", attributes=3)).encode()


def names(payload: bytes) -> list[str]:
    request = ExportTraceServiceRequest.FromString(payload)
    return [
        span.name
        for resource in request.resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    ]


def projects(payload: bytes) -> list[str]:
    request = ExportTraceServiceRequest.FromString(payload)
    return [
        attribute.value.string_value
        for resource in request.resource_spans
        for attribute in resource.resource.attributes
        if attribute.key == "mast.project"
    ]


class TestContent:
    """The parts of a request that are kept, counted, left out and overwritten."""

    def test_the_sender_s_own_bytes_are_kept(self) -> None:
        decoded = decode(VALID, TRACES, LIMITS)
        assert decoded.payload is VALID
        assert (decoded.items, decoded.rejected.total()) == (2, 0)

    def test_unknown_protobuf_fields_survive(self) -> None:
        unknown = b"\xfa\x7f\x04what"  # field 2047
        decoded = decode(VALID + unknown, TRACES, LIMITS, project="team")
        assert unknown in decoded.payload

    def test_an_empty_request_holds_nothing(self) -> None:
        assert decode(b"", TRACES, LIMITS).items == 0
        assert decode(b"{}", TRACES, LIMITS, json=True).items == 0

    @pytest.mark.parametrize("json", [False, True])
    def test_the_project_of_the_key_overwrites_the_sender_s(self, json: bool) -> None:
        """In every resource: one that names two, one that names one, one that names none."""
        request = request_of("x", project="somebody else's")
        attributes = request.resource_spans[0].resource.attributes
        attributes.add(key="mast.project").value.string_value = "another's"
        request.MergeFrom(request_of("y", project="a third one's"))
        request.MergeFrom(request_of("z"))
        body = json_format.MessageToJson(request).encode() if json else request.SerializeToString()
        decoded = decode(body, TRACES, LIMITS, json=json, project="mine")
        assert projects(decoded.payload) == ["mine"] * 3
        assert names(decoded.payload) == ["x", "y", "z"]

    def test_without_a_key_the_sender_s_project_stands(self) -> None:
        body = request_of("x", project="mine").SerializeToString()
        assert projects(decode(body, TRACES, LIMITS).payload) == ["mine"]

    @pytest.mark.parametrize("place", ["resource", "scope"])
    def test_spans_of_an_excessive_resource_or_scope_are_left_out(self, place: str) -> None:
        request = request_of("left out", "this too")
        owner: Any = request.resource_spans[0]
        owner = owner.resource if place == "resource" else owner.scope_spans[0].scope
        del owner.attributes[:]
        owner.attributes.extend(KeyValue(key=str(number)) for number in range(10))
        whole = body_of("kept") + request.SerializeToString()
        for beside in (b"", body_of("large", attributes=11)):
            decoded = decode(whole + beside, TRACES, LIMITS)
            assert names(decoded.payload) == ["kept", "left out", "this too"]
        owner.attributes.add(key="one more")
        decoded = decode(body_of("kept") + request.SerializeToString(), TRACES, LIMITS)
        assert names(decoded.payload) == ["kept"]
        assert (decoded.items, decoded.rejected.total()) == (1, 2)

    def test_messages_nested_without_end_are_refused(self) -> None:
        value = b""
        for _ in range(2000):
            inner = b"\x0a" + encoded(len(value)) + value  # ArrayValue.values
            value = b"\x2a" + encoded(len(inner)) + inner  # AnyValue.array_value
        attribute = b"\x12" + encoded(len(value)) + value  # KeyValue.value
        resource = b"\x0a" + encoded(len(attribute)) + attribute  # Resource.attributes
        spans = b"\x0a" + encoded(len(resource)) + resource  # ResourceSpans.resource
        with pytest.raises(RequestError):
            decode(b"\x0a" + encoded(len(spans)) + spans, TRACES, LIMITS)


def overfull(kind: str, count: int) -> bytes:
    """A request with one honest span and one that has too much of something."""
    request = request_of("honest", "overfull")
    span = request.resource_spans[0].scope_spans[0].spans[1]
    del span.attributes[:]
    if kind == "attributes":
        span.attributes.extend(KeyValue(key=str(number)) for number in range(count))
    elif kind == "events":
        span.events.extend(Span.Event() for _ in range(count))
    elif kind == "links":
        span.links.extend(Span.Link() for _ in range(count))
    elif kind == "attributes of an event":
        span.events.add().attributes.extend(KeyValue(key=str(number)) for number in range(count))
    else:
        span.links.add().attributes.extend(KeyValue(key=str(number)) for number in range(count))
    return request.SerializeToString()


OVERFULL = ["attributes", "events", "links", "attributes of an event", "attributes of a link"]


class TestOverfull:
    """A span that holds more than the limit is left out; those beside it are kept."""

    @pytest.mark.parametrize("kind", OVERFULL)
    def test_of_anything(self, kind: str) -> None:
        decoded = decode(overfull(kind, LIMITS.max_attributes + 1), TRACES, LIMITS)
        assert (decoded.items, decoded.rejected.total()) == (1, 1)
        assert names(decoded.payload) == ["honest"]
        full = overfull(kind, LIMITS.max_attributes)
        assert decode(full, TRACES, LIMITS).payload is full
        # Beside one that is left out each is looked at by itself.
        assert decode(full + body_of("large", attributes=11), TRACES, LIMITS).items == 2

    def test_by_a_million(self) -> None:
        assert decode(overfull("attributes", 9 * 10**5), TRACES, LIMITS).rejected == {
            "excessive": 1
        }
        with pytest.raises(TooLarge, match="values"):
            decode(overfull("attributes", 2 * 10**6), TRACES, LIMITS)

    def test_a_huge_key_is_a_key(self) -> None:
        request = request_of("x")
        span = request.resource_spans[0].scope_spans[0].spans[0]
        span.attributes.add(key="k" * 10**6).value.string_value = "v"
        assert decode(request.SerializeToString(), TRACES, LIMITS).items == 1


@pytest.mark.parametrize("beside", [b"", body_of("left out", attributes=11)])
def test_late_spans_are_counted(monkeypatch: pytest.MonkeyPatch, beside: bytes) -> None:
    now = time.time_ns()
    monkeypatch.setattr(time, "time_ns", lambda: now)
    request = request_of("old", "late", "in time", "new")
    for span, age in zip(
        request.resource_spans[0].scope_spans[0].spans,
        (10**12, 60 * 10**9 + 1, 60 * 10**9, 0),
        strict=True,
    ):
        span.end_time_unix_nano = now - age
    assert decode(request.SerializeToString() + beside, TRACES, LIMITS).late == 2


def decoded_or_refused(body: bytes, **options: Any) -> None:
    """Anything but a result that can be stored or a `RequestError` fails the test."""
    with contextlib.suppress(RequestError):
        decoded = decode(body, TRACES, LIMITS, **options)
        assert len(names(decoded.payload)) == decoded.items


class TestFuzz:
    """No input crashes the decoders."""

    @settings(max_examples=EXAMPLES, deadline=None)
    @given(body=st.binary(max_size=200), project=st.sampled_from([None, "team"]))
    def test_noise(self, body: bytes, project: str | None) -> None:
        decoded_or_refused(body, project=project)

    @settings(max_examples=EXAMPLES, deadline=None)
    @given(body=damaged(VALID), project=st.sampled_from([None, "team"]))
    def test_damaged_protobuf(self, body: bytes, project: str | None) -> None:
        decoded_or_refused(body, project=project)

    @settings(max_examples=EXAMPLES, deadline=None)
    @given(body=damaged(VALID_JSON))
    def test_damaged_json(self, body: bytes) -> None:
        decoded_or_refused(body, json=True)

    @settings(max_examples=EXAMPLES, deadline=None)
    @given(
        document=st.recursive(
            st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8)),
            lambda inner: st.one_of(
                st.lists(inner, max_size=3),
                st.dictionaries(
                    st.sampled_from(
                        [
                            "resourceSpans",
                            "scopeSpans",
                            "spans",
                            "attributes",
                            "key",
                            "value",
                            "stringValue",
                            "intValue",
                            "arrayValue",
                            "kvlistValue",
                            "values",
                            "traceId",
                            "kind",
                            "events",
                            "links",
                            "status",
                        ]
                    ),
                    inner,
                    max_size=4,
                ),
            ),
            max_leaves=25,
        )
    )
    def test_json_of_the_wrong_shape(self, document: Any) -> None:
        decoded_or_refused(json.dumps(document).encode(), json=True)

    @settings(max_examples=EXAMPLES, deadline=None)
    @given(body=st.binary(max_size=200))
    def test_noise_as_logs(self, body: bytes) -> None:
        with contextlib.suppress(RequestError):
            decode(body, LOGS, LIMITS, project="team")
