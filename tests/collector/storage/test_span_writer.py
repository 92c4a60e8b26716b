"""`SpanWriter`: each batch once, a bad request found by its number."""

import struct
from itertools import accumulate

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span
from otlp_requests import START, TRACE, agent_span, request, span

from mast_trace.exceptions import StorageError
from mast_trace_collector.storage import Store
from mast_trace_collector.storage import span_writer as module
from mast_trace_collector.storage.migrations import migrate
from mast_trace_collector.storage.span_columns import SPAN_COLUMNS, columns_of
from mast_trace_collector.storage.span_writer import PoisonError, SpanWriter
from mast_trace_collector.storage.store import WRITE_SETTINGS

COUNTS = """
    SELECT (SELECT count() FROM otel_traces) AS spans,
           (SELECT sum(Spans) FROM mast_runs) AS in_runs,
           (SELECT count() FROM otel_traces_trace_id_ts) AS lookups
"""


def test_spans_are_stored_with_nanoseconds(store):
    stored = SpanWriter(store).write([request(span(1), span(2)), request(span(3))], token="t")
    assert stored == 3
    rows = store.query("SELECT toUnixTimestamp64Nano(Timestamp) AS at FROM otel_traces")
    assert rows == [{"at": START}] * 3


def count(store):
    (row,) = store.query("SELECT count() AS n FROM otel_traces")
    return row["n"]


def poisoned(writer, requests, words="", **options):
    """Return the number of the request that a writer refuses."""
    with pytest.raises(PoisonError, match=words) as caught:
        writer.write(requests, token="t", **options)
    return caught.value.index


WAYS = pytest.mark.parametrize("parse_from", [0, 2**60], ids=["by ClickHouse", "by Python"])


@WAYS
def test_the_same_batch_again_stores_nothing_anywhere(store, parse_from):
    writer = SpanWriter(store, parse_from=parse_from)
    for _ in range(3):
        assert writer.write([request(span(1), span(2, parent=1))], token="segment-1") == 2
    assert store.query(COUNTS) == [{"spans": 2, "in_runs": 2, "lookups": 1}]


def test_equal_spans_in_another_batch_are_stored(store):
    """The token alone identifies a batch: a client may send the same spans twice on purpose."""
    writer = SpanWriter(store)
    writer.write([request(span(1))], token="segment-1")
    writer.write([request(span(1))], token="segment-2")
    assert count(store) == 2


def test_a_batch_is_still_known_after_a_restart(folder):
    for _ in range(2):
        with Store.open(f"chdb://{folder}") as store:
            migrate(store)
            SpanWriter(store).write([request(span(1))], token="segment-1")
            assert store.query(COUNTS) == [{"spans": 1, "in_runs": 1, "lookups": 1}]


@WAYS
@pytest.mark.parametrize("piece", [1, module.COLUMNS_BYTES])
def test_each_request_has_its_own_project(store, monkeypatch, parse_from, piece):
    monkeypatch.setattr(module, "COLUMNS_BYTES", piece)
    requests = [request(span(1, trace="1" * 32)), request(span(2, trace="2" * 32))]
    writer = SpanWriter(store, parse_from=parse_from)
    writer.write(requests, token="t", project_of=["one", "two"].__getitem__)
    rows = store.query("SELECT Project, TraceId FROM mast_runs ORDER BY Project")
    assert [(row["Project"], row["TraceId"][0]) for row in rows] == [("one", "1"), ("two", "2")]


@WAYS
def test_a_request_that_is_no_protobuf_is_named_and_nothing_is_stored(store, parse_from):
    writer = SpanWriter(store, parse_from=parse_from)
    for broken in (b"\xff\xff\xff", request(span(1))[:-3], struct.pack("<I", 7)):
        assert poisoned(writer, [request(span(1)), broken, request(span(2))]) == 1
    assert count(store) == 0
    assert writer.write([request(span(1)), request(span(2))], token="t") == 2
    assert count(store) == 2


def test_poison_says_which_request_it_is_and_why(store):
    """Poison is located even if the number of spans is known, so that nothing was parsed before."""
    for spans in (None, 2):
        with pytest.raises(PoisonError) as caught:
            SpanWriter(store).write([request(span(1)), b"\xff\xff"], token="t", spans=spans)
        assert caught.value.index == 1
        assert caught.value.reason.startswith("it is no OTLP trace request: ")
        assert str(caught.value) == f"request 1 cannot be stored: {caught.value.reason}"


def test_a_batch_is_known_by_its_bare_token(store):
    """As other versions write it: what one of them has stored, the next does not store again."""
    sent = request(span(1))
    columns = columns_of([ExportTraceServiceRequest.FromString(sent)], [None]).columns
    store.insert_columns("otel_traces", SPAN_COLUMNS, columns, token="t", settings=WRITE_SETTINGS)
    SpanWriter(store).write([sent], token="t")
    assert count(store) == 1


@WAYS
@pytest.mark.usefixtures("none_bad")
def test_a_request_that_the_database_refuses_is_named(store, parse_from):
    requests = [request(span(1)), request(span(2, name="bad")), request(span(3))]
    assert poisoned(SpanWriter(store, parse_from=parse_from), requests, "none_bad") == 1
    assert count(store) == 0


def test_a_database_that_is_not_ready_is_no_poison(folder):
    with Store.open(f"chdb://{folder}") as store:
        writer = SpanWriter(store)
        with pytest.raises(StorageError, match="mast-trace migrate") as caught:
            writer.write([request(span(1))], token="t")
        assert not isinstance(caught.value, PoisonError)
        migrate(store)
        assert writer.write([request(span(1))], token="t") == 1


@pytest.fixture
def piecemeal(monkeypatch):
    """Each request is laid out by itself."""
    monkeypatch.setattr(module, "COLUMNS_BYTES", 1)


@pytest.mark.usefixtures("piecemeal")
def test_a_batch_in_pieces_is_stored_once(store):
    requests = [request(), *(request(span(number)) for number in range(1, 6)), request()]
    for _ in range(3):
        assert SpanWriter(store).write(requests, token="t") == 5
    assert store.query("SELECT count() AS n, uniqExact(SpanId) AS ids FROM otel_traces") == [
        {"n": 5, "ids": 5}
    ]


@pytest.mark.usefixtures("piecemeal", "none_bad")
def test_what_was_stored_before_a_bad_piece_is_not_stored_again(store):
    requests = [request(span(number, name="bad" if number == 3 else "")) for number in range(1, 6)]
    for _ in range(2):
        assert poisoned(SpanWriter(store), requests) == 2
    assert count(store) == 2
    *offsets, _ = accumulate(map(len, requests), initial=0)
    del requests[2], offsets[2]
    writer = SpanWriter(store, parse_from=0)
    assert writer.write(requests, token="t", refused=True, offsets=offsets) == 4
    assert count(store) == 4


@pytest.mark.usefixtures("none_bad")
@pytest.mark.parametrize("gone", [0, 1, 2])
def test_what_follows_a_request_left_out_never_joins_a_stored_piece(store, monkeypatch, gone):
    """A request that joined a stored piece would count as a repetition of it, and be lost."""
    requests = [request(span(number)) for number in (1, 2, 3)]
    bad = request(span(4, name="bad"))
    size = len(requests[0])
    monkeypatch.setattr(module, "COLUMNS_BYTES", 2 * size)
    offsets = [0, size, 2 * size, 3 * size]
    assert poisoned(SpanWriter(store), [*requests, bad], offsets=offsets) == 3
    assert count(store) == 2
    del requests[gone], offsets[gone]
    SpanWriter(store).write(requests, token="t", refused=True, offsets=offsets)
    found = store.query("SELECT count() AS n, uniqExact(SpanId) AS ids FROM otel_traces")
    # Those of the first piece were stored before one of them was left out.
    assert found == [{"n": 3 - (gone == 2), "ids": 3 - (gone == 2)}]


@pytest.mark.usefixtures("piecemeal")
def test_what_a_defect_of_ours_cannot_lay_out_is_named(store, monkeypatch):
    def defective(requests, projects):
        if any("odd" in str(each) for each in requests):
            raise ZeroDivisionError("a defect")
        return columns_of(requests, projects)

    monkeypatch.setattr(module, "columns_of", defective)
    requests = [request(span(1)), request(span(2, name="odd")), request(span(3))]
    assert poisoned(SpanWriter(store), requests, "ZeroDivisionError") == 1
    rest, offsets = [requests[0], requests[2]], [0, len(requests[0]) + len(requests[1])]
    assert SpanWriter(store).write(rest, token="t", refused=True, offsets=offsets) == 2
    assert count(store) == 2


def test_an_empty_batch_is_no_insert(store):
    assert SpanWriter(store).write([], token="t") == 0
    assert SpanWriter(store).write([request()], token="t") == 0


def test_spans_of_five_hundred_days_go_in_one_batch(store):
    day = 86_400 * 10**9
    spans = [span(number, start=START - number * day) for number in range(1, 501)]
    assert SpanWriter(store).write([request(*spans)], token="t") == 500


def test_odd_spans_do_not_stop_their_neighbours(store):
    odd = [
        Span(),
        Span(start_time_unix_nano=2**64 - 1),
        span(1, start=50, lasted=-40),
        span(2, trace="f" * 32, attributes={"": "no name", "big": "x" * 3_000_000, "nul": "a\0b"}),
        span(2, trace="f" * 32, attributes={"deep": [[{"a": [b"\xff"]}]]}),
    ]
    assert SpanWriter(store).write([request(*odd, agent_span(9))], token="t") == 6
    (row,) = store.query("SELECT count() AS n, countIf(TraceId = '') AS bare FROM otel_traces")
    assert row == {"n": 6, "bare": 2}
    runs = store.query("SELECT TraceId FROM mast_runs ORDER BY TraceId")
    assert [row["TraceId"] for row in runs] == [TRACE, "f" * 32]
