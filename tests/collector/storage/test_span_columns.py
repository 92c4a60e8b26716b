"""OTLP requests become the rows that the OpenTelemetry Collector's exporter would write."""

import json
import math

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span
from otlp_requests import START, TRACE, any_value, request, span

from mast_trace_collector.storage.span_columns import (
    LATEST_TIME,
    SPAN_COLUMNS,
    columns_of,
    value_text,
)


def rows(*requests, project=None):
    parsed = [ExportTraceServiceRequest.FromString(data) for data in requests]
    columns = columns_of(parsed, [project] * len(parsed)).columns
    return [dict(zip(SPAN_COLUMNS, row, strict=True)) for row in zip(*columns, strict=True)]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("plain", "plain"),
        ("", ""),
        (None, ""),
        (True, "true"),
        (False, "false"),
        (0, "0"),
        (-(2**63), "-9223372036854775808"),
        (1.0, "1"),
        (-0.0, "-0"),
        (0.1, "0.1"),
        (1e-6, "0.000001"),
        (1.25e-5, "0.0000125"),
        (1e-7, "1e-7"),
        (1.5e-10, "1.5e-10"),
        (1e20, "100000000000000000000"),
        (12345678901234567890.0, "12345678901234567000"),
        (1e21, "1e+21"),
        (math.inf, "json: unsupported value: +Inf"),
        (math.nan, "json: unsupported value: NaN"),
        (b"\xff\x00", "/wA="),
        ([], "[]"),
        (["a", 1, 2.0, 0.5, True, None, b"\xff"], '["a",1,2,0.5,true,null,"/w=="]'),
        ({"b": [1], "a": {"x": "ü"}}, '{"a":{"x":"ü"},"b":[1]}'),
    ],
)
def test_values_are_written_as_the_collector_writes_them(value, text):
    assert value_text(any_value(value)) == text


def test_a_deeply_nested_value_is_kept():
    value = 1
    for _ in range(12):
        value = [{"k": value}]
    assert json.loads(value_text(any_value(value))) == value


def test_every_column_of_a_span():
    sent = span(
        7,
        parent=3,
        lasted=1500,
        status=2,
        message="it broke",
        name="chat gpt",
        kind=Span.SPAN_KIND_CLIENT,
        trace_state="k=v",
        attributes={"n": 1, "list": ["a"]},
        events=[Span.Event(time_unix_nano=START + 5, name="first token")],
        links=[Span.Link(trace_id=b"\x0a" * 16, span_id=b"\x0b" * 8, trace_state="l=1")],
    )
    (row,) = rows(request(sent, resource={"service.name": "shop", "host.cpus": 2}))
    assert row == {
        "Timestamp": START,
        "TraceId": TRACE,
        "SpanId": "0000000000000007",
        "ParentSpanId": "0000000000000003",
        "TraceState": "k=v",
        "SpanName": "chat gpt",
        "SpanKind": "Client",
        "ServiceName": "shop",
        "ResourceAttributes": {"service.name": "shop", "host.cpus": "2"},
        "ScopeName": "tests",
        "ScopeVersion": "1.0",
        "SpanAttributes": {"n": "1", "list": '["a"]'},
        "Duration": 1500,
        "StatusCode": "Error",
        "StatusMessage": "it broke",
        "Events.Timestamp": [START + 5],
        "Events.Name": ["first token"],
        "Events.Attributes": [{}],
        "Links.TraceId": ["0a" * 16],
        "Links.SpanId": ["0b" * 8],
        "Links.TraceState": ["l=1"],
        "Links.Attributes": [{}],
    }


class TestOddSpans:
    """Faulty spans are stored as well as possible."""

    def test_a_span_with_nothing_in_it(self):
        (row,) = rows(request(Span()))
        assert (row["TraceId"], row["SpanId"], row["Timestamp"], row["Duration"]) == ("", "", 0, 0)
        assert (row["SpanKind"], row["StatusCode"]) == ("Unspecified", "Unset")

    def test_an_end_before_the_start_lasts_no_time(self):
        (row,) = rows(request(span(start=100, lasted=-50)))
        assert (row["Timestamp"], row["Duration"]) == (100, 0)

    def test_times_beyond_the_columns_range_are_held_at_its_end(self):
        late = Span(start_time_unix_nano=2**64 - 1, end_time_unix_nano=2**64 - 1)
        late.events.add(time_unix_nano=2**63)
        (row,) = rows(request(late))
        assert row["Timestamp"] == row["Events.Timestamp"][0] == LATEST_TIME

    def test_the_all_zero_parent_is_no_parent(self):
        (row,) = rows(request(Span(parent_span_id=bytes(8), span_id=b"\1" * 8)))
        assert row["ParentSpanId"] == ""

    @pytest.mark.parametrize(("kind", "status"), [(b"\x63", b"\x63"), (b"\x06", b"\x03")])
    def test_an_unknown_kind_or_status_is_no_error(self, kind, status):
        """The first that nobody has named yet, too."""
        odd = Span()
        odd.ParseFromString(b"\x30" + kind + b"\x7a\x02\x18" + status)
        (row,) = rows(request(odd))
        assert (row["SpanKind"], row["StatusCode"]) == ("", "")

    def test_a_sender_without_a_name_has_none(self):
        (row,) = rows(request(span(), resource={}))
        assert (row["ServiceName"], row["ResourceAttributes"]) == ("", {})

    def test_a_request_without_spans_gives_no_rows(self):
        assert rows(request(), b"") == []


class TestProject:
    """The project is what the collector says, not what the sender says."""

    @pytest.mark.parametrize(
        ("project", "stored"),
        [("ours", "ours"), ("", None), (None, "theirs")],
        ids=["set", "empty", "left alone"],
    )
    def test_it_replaces_the_senders(self, project, stored):
        sent = request(span(), resource={"mast.project": "theirs"})
        (row,) = rows(sent, project=project)
        assert row["ResourceAttributes"].get("mast.project") == stored
