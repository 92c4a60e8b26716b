"""Requests that ClickHouse parses itself become the same rows as those laid out in Python."""

import itertools
import math
import os
import random
import shutil
import struct
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from opentelemetry.proto.trace.v1.trace_pb2 import Span
from otlp_requests import START, TRACE, agent_span, request, span

from mast_trace.exceptions import StorageError
from mast_trace_collector.spool import Record
from mast_trace_collector.spool.segment import SegmentWriter
from mast_trace_collector.storage import Store
from mast_trace_collector.storage.span_columns import SPAN_COLUMNS
from mast_trace_collector.storage.span_writer import OtlpTable, SpanWriter

EVERYTHING = ", ".join(f"`{name}`" for name in SPAN_COLUMNS)
ROWS = f"""
    SELECT toUnixTimestamp64Nano(Timestamp) AS at, {EVERYTHING}, Project, Operation, AgentName,
        Recipients, InputTokens
    FROM otel_traces ORDER BY ALL
"""
RUNS = "SELECT * EXCEPT LastSeen FROM mast_runs ORDER BY Project, TraceId"
TOKENS = itertools.count()
SEED = int(os.environ.get("MAST_TRACE_TEST_SEED", "0")) or random.SystemRandom().randrange(10**9)
VALUES = {
    "text": "plain",
    "empty": "",
    "none": None,
    "quotes": "a\"b\\c/d'e\n\t\r\0\x07 ü 🙂 </script>",
    "true": True,
    "false": False,
    "zero": 0,
    "least": -(2**63),
    "half": 0.5,
    "whole": 3.0,
    "minus_zero": -0.0,
    "small": 1.25e-6,
    "smaller": 1.5e-10,
    "large": 1e20,
    "larger": 1.5e21,
    "infinite": -math.inf,
    "not_a_number": math.nan,
    "bytes": b"\xff\x00\x01",
    "no_bytes": b"",
    "empty_list": [],
    "line_breaks": ["\u2028\u2029"],
    "minus_zeros": [-0.0, 0.0],
    "odd_numbers": 12345678901234567890.0,
    "list": ["a", "", 'ü"\\/\b\f\n\x01\x7f', 1, -2, True, False, None, 0.25, 4.0],
}


def by_both(store, requests, **options):
    """Write by ClickHouse, then by Python; returns the rows and runs of each."""
    out = []
    for parse_from in (0, 2**60):
        for table in ("otel_traces", "otel_traces_trace_id_ts", "mast_run_states"):
            store.command(f"TRUNCATE TABLE {table}")
        writer = SpanWriter(store, parse_from=parse_from)
        writer.write(requests, token=f"batch-{next(TOKENS)}", **options)
        out.append((store.query(ROWS), store.query(RUNS)))
    return out


def same(store, requests, rows, **options):
    """Check that both ways make the same rows, so many; return rows and runs."""
    by_clickhouse, by_python = by_both(store, requests, **options)
    assert by_clickhouse == by_python
    assert len(by_python[0]) == rows
    return by_python


def by_file(store, folder, requests):
    """Write as a spool segment, which the embedded engine reads; returns the rows and runs."""
    for table in ("otel_traces", "otel_traces_trace_id_ts", "mast_run_states"):
        store.command(f"TRUNCATE TABLE {table}")
    path = segment_file(folder, requests)
    writer = SpanWriter(store, parse_from=0)
    assert writer.write_file(path, size=1, token=f"file-{next(TOKENS)}")
    return store.query(ROWS), store.query(RUNS)


def segment_file(folder, requests):
    writer = SegmentWriter(folder / f"{next(TOKENS)}.log")
    writer.append([Record.of(data, 1) for data in requests])
    return writer.close(0.0).path


def counted(store):
    (row,) = store.query("SELECT count() AS n FROM otel_traces")
    return row["n"]


def can_parse(store):
    """Return whether this version of ClickHouse reads OTLP: the first of the settings that it needs."""
    needed = "input_format_protobuf_oneof_presence"
    return bool(store.query(f"SELECT 1 FROM system.settings WHERE name = '{needed}'"))


def parsed_by_clickhouse(store, *requests):
    """Return whether ClickHouse alone can store the requests."""
    return OtlpTable(store).write(requests, [None] * len(requests), f"alone-{next(TOKENS)}")


def test_every_value_and_column_is_the_same(store, tmp_path):
    given, one = (span(attributes=each).attributes for each in (VALUES, {"k": 1}))
    first = Span.Event(time_unix_nano=START + 5, name="first", attributes=given)
    events = [first, Span.Event(time_unix_nano=2**64 - 1)]
    ids = {"trace_id": b"\x0a" * 16, "span_id": b"\x0b" * 8}
    links = [Span.Link(**ids, trace_state="l=1", attributes=one), Span.Link(trace_id=bytes(16))]
    requests = [
        request(
            span(1, attributes=VALUES, kind=3, status=2, message="broke", trace_state="a=b"),
            span(2, parent=1, events=events, links=links),
            agent_span(3, "send_message", attributes={"mast.message.recipients": ["a", "b"]}),
            resource={"service.name": "shop", **VALUES},
        ),
        request(span(4, trace="f" * 32), resource={"service.name": 7}, scope=""),
        request(agent_span(5, attributes={"gen_ai.usage.input_tokens": 12}), resource={}),
    ]
    assert parsed_by_clickhouse(store, *requests) == can_parse(store)
    by_python = same(store, requests, 5)
    if store.embedded_path:
        assert by_file(store, tmp_path, requests) == by_python


def test_odd_spans_are_the_same(store):
    spans = [
        Span(),
        Span(start_time_unix_nano=2**64 - 1, end_time_unix_nano=2**64 - 1),
        span(1, start=100, lasted=-50),
        Span(trace_id=b"\1" * 3, span_id=b"\2" * 40, parent_span_id=bytes(8)),
        span(2, attributes={"": "no name", "nul": "a\0b"}),
    ]
    odd = Span()
    odd.ParseFromString(b"\x30\x63\x7a\x02\x18\x63")
    negative = Span(name="negative")
    negative.MergeFromString(b"\x30" + b"\xff" * 9 + b"\x01")
    same(store, [request(*spans, odd, negative), b"", request()], 7)


plain_values = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
    st.integers(-(2**63), 2**63 - 1),
    st.booleans(),
    st.floats(),
    st.binary(max_size=9),
)
listed_values = st.one_of(
    st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=9),
    st.integers(-(2**63), 2**63 - 1),
    st.booleans(),
    st.floats(1e-4, 1e15),
    st.none(),
)
attribute_sets = st.dictionaries(
    st.text("abc.é", max_size=4),
    st.one_of(plain_values, st.lists(listed_values, max_size=4)),
    max_size=5,
)


@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(attribute_sets, min_size=1, max_size=40))
def test_any_attributes_are_the_same(embedded, sets):
    requests = [request(*(span(i, attributes=each) for i, each in enumerate(sets, start=1)))]
    assert parsed_by_clickhouse(embedded, *requests)
    by_python = same(embedded, requests, len(sets))
    with tempfile.TemporaryDirectory() as folder:
        assert by_file(embedded, Path(folder), requests) == by_python


def test_three_thousand_drawn_spans_are_the_same(embedded):
    """Attributes by the ten thousand in one batch, for the time of a few of the examples above."""
    dice = random.Random(SEED)
    texts = ["", "\0", "\x7f", "ü", "🙂", "\u2028", '"', "\\", "/", "'", "\t", "{", "[1]", "null"]
    numbers = [0.0, -0.0, 5e-324, 1.7976931348623157e308, math.inf, -math.inf, math.nan]

    def text():
        return "".join(dice.choices(texts, k=dice.randrange(6))) + "a" * dice.choice([0, 1, 300])

    def whole():
        return dice.choice([1, -1]) * dice.getrandbits(dice.randrange(1, 64))

    def value(*, listed=False):
        kinds = [text, whole, lambda: dice.random() < 0.5, lambda: dice.uniform(1e-4, 1e15)]
        if listed:
            # Values that ClickHouse renders in an array differently from Python take the other
            # path.
            return dice.choice([*kinds, lambda: None])()
        more = [
            lambda: struct.unpack("<d", dice.randbytes(8))[0],
            lambda: dice.choice(numbers),
            lambda: dice.randbytes(dice.randrange(9)),
            lambda: [value(listed=True) for _ in range(dice.randrange(5))],
        ]
        return dice.choice([*kinds, *more])()

    def attributes(most):
        return {text(): value() for _ in range(dice.randrange(most))}

    def drawn(number):
        inner = span(attributes=attributes(3)).attributes
        events = [Span.Event(name=text(), time_unix_nano=START, attributes=inner)]
        links = [Span.Link(trace_id=dice.randbytes(16), attributes=inner)]
        return span(
            number,
            attributes=attributes(9),
            events=events * dice.randrange(2),
            links=links * dice.randrange(2),
        )

    requests = [
        request(*(drawn(30 * part + n) for n in range(1, 31)), resource=attributes(4))
        for part in range(100)
    ]
    by_clickhouse, by_python = by_both(embedded, requests)
    assert len(by_python[0]) == 3000
    for found, expected in zip(*(rows for rows, _ in (by_clickhouse, by_python)), strict=True):
        assert found == expected, f"MAST_TRACE_TEST_SEED={SEED}"
    assert by_clickhouse[1] == by_python[1]
    assert parsed_by_clickhouse(embedded, *requests)


@pytest.mark.parametrize("place", ["span", "resource", "event", "link"])
def test_nested_values_take_the_other_way_and_nothing_is_left_behind(embedded, place):
    kinds = [{"k": "v"}, {}, [["a"]], [{"k": 1}], [b"\xff"], [1e-7], [math.nan], [math.inf], [1e20]]
    for value in kinds:
        nested = span(attributes={"value": value}).attributes
        options = {
            "span": {"attributes": {"value": value}},
            "resource": {},
            "event": {"events": [Span.Event(attributes=nested)]},
            "link": {"links": [Span.Link(attributes=nested)]},
        }[place]
        resource = {"value": value} if place == "resource" else {}
        odd = request(span(2, **options), resource=resource)
        assert not parsed_by_clickhouse(embedded, request(span(1)), odd, request(span(3)))
    assert counted(embedded) == 0
    same(embedded, [request(span(1)), odd, request(span(3))], 3)


@pytest.mark.parametrize("project", ["ours", "", None])
def test_the_project_is_the_same_and_no_sender_can_choose_it(store, tmp_path, project):
    spoof = b"\xc2\x3e\x06spoofd"
    requests = [
        request(span(1), resource={"mast.project": "theirs", "a": "b"}) + spoof,
        request(span(2)) + spoof,
        request(span(3), resource={"mast.project": ""}),
    ]
    by_python = same(store, requests, 3, project_of=lambda index: project)
    projects = {row["Project"] for row in by_python[0]}
    assert projects == ({"theirs", ""} if project is None else {project})
    if project is None and store.embedded_path:
        assert by_file(store, tmp_path, requests) == by_python


def test_a_file_again_or_its_requests_store_nothing_twice(embedded, tmp_path):
    requests = [request(span(1), span(2, parent=1)), request(span(3))]
    path = segment_file(tmp_path, requests)
    writer = SpanWriter(embedded, parse_from=0)
    for _ in range(2):
        assert writer.write_file(path, size=1, token="segment-1")
    assert writer.write(requests, token="segment-1") == 3
    counts = embedded.query(
        "SELECT (SELECT count() FROM otel_traces) AS spans, (SELECT sum(Spans) FROM mast_runs) AS runs"
    )
    assert counts == [{"spans": 3, "runs": 3}]


@pytest.mark.parametrize(
    "name", ["a{1,2}", "a*", "a?b", "it's", "a[bc]", "back\\slash", "é", "x.zip::y"]
)
def test_a_folder_of_any_name(embedded, tmp_path, name):
    """A path with a pattern in it would name other files, or none: not an error to ClickHouse."""
    (tmp_path / "a1").mkdir()
    segment_file(tmp_path / "a1", [request(span(9))])
    (tmp_path / name).mkdir()
    path = segment_file(tmp_path / name, [request(span(1))])
    writer = SpanWriter(embedded, parse_from=0)
    plain = not set(name) & set("{*?:")
    assert writer.write_file(path, size=1, token="t") is (True if plain else None)
    assert counted(embedded) == int(plain)


@pytest.mark.parametrize("broken", [b"\xff\xff\xff", request(span(1))[:-3]])
def test_a_file_that_cannot_be_parsed_stores_nothing(embedded, tmp_path, broken):
    path = segment_file(tmp_path, [request(span(1)), broken, request(span(2))])
    assert SpanWriter(embedded, parse_from=0).write_file(path, size=1, token="t") is False
    assert counted(embedded) == 0


def test_a_file_in_which_nothing_is_found_is_not_taken_for_stored(embedded, tmp_path):
    path = tmp_path / "1.log"
    path.write_bytes(b"")
    with pytest.raises(StorageError, match="finds no requests"):
        SpanWriter(embedded, parse_from=0).write_file(path, size=1, token="t")


@pytest.mark.parametrize(
    ("options", "unparsed"),
    [({"more": 0}, True), ({"more": 1}, False), ({"more": 9, "size": 10**6}, True)],
)
def test_a_batch_goes_to_clickhouse_from_its_size_on(embedded, options, unparsed):
    """The first way that a batch takes is the one to which its token is known."""
    requests = [request(span(1)), request(span(2))]
    parse_from = sum(map(len, requests)) + options.pop("more")
    for _ in range(2):
        SpanWriter(embedded, parse_from=parse_from).write(requests, token="t", **options)
    assert counted(embedded) == 2
    assert OtlpTable(embedded).write(requests, [None, None], "t")
    assert counted(embedded) == (2 if unparsed else 4)


def test_a_file_goes_to_clickhouse_from_the_size_of_its_batch_on(embedded, tmp_path):
    path = segment_file(tmp_path, [request(span(1))])
    writer = SpanWriter(embedded, parse_from=100)
    assert writer.write_file(path, size=99, token="t") is None
    assert writer.write_file(path, size=100, token="t") is True


def test_only_the_engine_in_this_process_reads_files(store, tmp_path):
    path = segment_file(tmp_path, [request(span(1))])
    stored = SpanWriter(store, parse_from=0).write_file(path, size=1, token="t")
    assert stored is (True if store.embedded_path else None)


def test_the_engine_leaves_no_schema_in_the_working_directory(embedded, tmp_path):
    shutil.rmtree("__cache__", ignore_errors=True)
    writer = SpanWriter(embedded, parse_from=0)
    writer.write([request(span(1))], token="t")
    writer.write_file(segment_file(tmp_path, [request(span(2))]), size=1, token="u")
    assert counted(embedded) == 2
    assert not Path("__cache__").exists()


def test_over_the_network_a_batch_goes_as_a_whole(store, monkeypatch):
    """It can be sent again if a kept connection is closed."""
    given = []
    really = Store.raw_insert

    def raw_insert(self, table, data, *rest, **options):
        given.append(isinstance(data, bytes))
        really(self, table, data, *rest, **options)

    monkeypatch.setattr(Store, "raw_insert", raw_insert)
    assert parsed_by_clickhouse(store, request(span(1))) == can_parse(store)
    assert given == [not store.embedded_path]


def test_requests_of_any_length_are_told_apart(embedded):
    """Around the lengths at which the number before a request takes a byte more."""
    empty = len(request(span(1, name="")))
    names = [range(120 - empty, 140 - empty), range(16_370 - empty, 16_390 - empty)]
    requests = [request(span(1, name="x" * size)) for sizes in names for size in sizes]
    assert {127, 128, 16_383, 16_384} <= {len(each) + 4 for each in requests}
    assert parsed_by_clickhouse(embedded, *requests)
    rows = embedded.query("SELECT length(SpanName) AS size FROM otel_traces ORDER BY size")
    assert [row["size"] for row in rows] == [size for sizes in names for size in sizes]


def test_a_project_that_is_no_text_is_the_same(store):
    (row,), _ = same(store, [request(span(1))], 1, project_of=lambda _: "a\ud800b")
    assert row["Project"] == "a?b"


def test_a_batch_takes_the_same_way_from_a_file(embedded, tmp_path):
    """Bytes around the requests in a file do not count: the other path has no token of its own."""
    requests = [request(span(1)), request(span(2))]
    size = sum(map(len, requests))
    path = segment_file(tmp_path, requests)
    assert path.stat().st_size > size
    writer = SpanWriter(embedded, parse_from=size + 1)
    assert writer.write_file(path, size=size, token="t") is None


def test_a_large_batch_of_many_days_is_one_block(store):
    """Several blocks would be stored in part if a nested value in the last one failed."""
    day = 86_400 * 10**9
    spans = [span(number, start=START - number % 150 * day) for number in range(1, 5000)]
    last = request(span(9999, attributes={"value": {"k": "v"}}))
    requests = [request(*spans[i : i + 100]) for i in range(0, len(spans), 100)]
    assert not parsed_by_clickhouse(store, *requests, last)
    assert counted(store) == 0
    assert SpanWriter(store, parse_from=0).write(requests, token="t") == 4999
    assert store.query("SELECT uniqExact(SpanId) AS n FROM otel_traces") == [{"n": 4999}]


def test_a_database_that_cannot_parse_gets_columns(store):
    store.command("DROP TABLE mast_otlp_inlet_mv")
    store.command("DROP TABLE mast_otlp_inlet")
    writer = SpanWriter(store, parse_from=0)
    assert writer.write([request(span(1))], token="a") == 1
    assert writer.write([request(span(2))], token="b") == 1
    assert store.query("SELECT TraceId, Spans FROM mast_runs") == [{"TraceId": TRACE, "Spans": 2}]


def test_a_database_that_cannot_parse_is_not_asked_again(embedded, tmp_path):
    embedded.command("DROP TABLE mast_otlp_inlet_mv")
    embedded.command("DROP TABLE mast_otlp_inlet")
    path = segment_file(tmp_path, [request(span(1))])
    writer = SpanWriter(embedded, parse_from=0)
    told = [writer.write_file(path, size=1, token="t") for _ in range(2)]
    assert told == [False, None]


def test_memory_is_that_of_the_requests_also_where_columns_are_replicated_eagerly(embedded, engine):
    """A request held whole at each of its 2,000 spans would be 4 GB."""
    large = request(*(span(number, name="x" * 1000) for number in range(1, 2001)))
    with Store.open(engine.url, settings={"enable_lazy_columns_replication": 0}) as store:
        assert OtlpTable(store).write([large] * 2, [None] * 2, "t")
    assert counted(embedded) == 4000
