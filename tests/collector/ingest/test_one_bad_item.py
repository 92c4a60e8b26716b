"""One bad span or record of a request: everything else is kept as if that were not in it."""

from __future__ import annotations

import copy
import gzip
import json
import os
import random
from typing import TYPE_CHECKING, Any

import orjson
import pytest
from google.protobuf import json_format
from google.protobuf.message import DecodeError
from hypothesis import given, settings
from hypothesis import strategies as st
from ingest_support import JSON, call, post, until
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.trace.v1.trace_pb2 import Span
from spoiled import (
    MARKER,
    NO_TEXT,
    NOW,
    as_json,
    damaged,
    deep,
    framed,
    items_of,
    rows_of,
    texts_in,
    whole_request,
    with_item,
)

from mast_trace_collector.otlp.checking import LATEST_TIME
from mast_trace_collector.otlp.decoding import RequestLimits, TakesLong, decode
from mast_trace_collector.otlp.errors import RequestError
from mast_trace_collector.otlp.signals import LOGS, TRACES, Signal
from mast_trace_collector.security import new_key
from mast_trace_collector.spool import Record
from mast_trace_collector.spool.segment import SegmentWriter
from mast_trace_collector.storage.log_writer import LogWriter
from mast_trace_collector.storage.span_writer import SpanWriter

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from ingest_support import Launch

    from mast_trace_collector.collector import Collector
    from mast_trace_collector.storage import Store

LIMITS = RequestLimits(max_nesting=24, max_attributes=50)
# A longer run: MAST_TRACE_TEST_FUZZ=1000000.
SEED = int(os.environ.get("MAST_TRACE_TEST_SEED", "0")) or random.SystemRandom().randrange(10**9)
EXAMPLES = int(os.environ.get("MAST_TRACE_TEST_FUZZ", "300"))
SIGNALS = pytest.mark.parametrize("signal", [TRACES, LOGS], ids=lambda signal: signal.name)
GOOD = {number.to_bytes(8, "big").hex() for number in (1, 3)}
RUINED = [5, -1, 1.5, 2**70, float("nan"), True, "x", "\ud800", [], [5], {}, {"a": 1}, [[]], [None]]


def without_the_second(signal: Signal) -> dict[str, tuple[Any, ...]]:
    return rows_of(whole_request(signal, 1, 3).SerializeToString(), signal)


def sent(request: Any, json: bool) -> bytes:
    """The bytes of a request."""
    return orjson.dumps(as_json(request)) if json else request.SerializeToString()


def kept(decoded: Any, signal: Signal) -> dict[str, tuple[Any, ...]]:
    """The rows of the first and the last item, after it was checked that all three are accounted for."""
    rows = rows_of(decoded.payload, signal)
    assert len(rows) == decoded.items
    assert decoded.items + decoded.rejected.total() == 3
    answer = signal.answer(decoded.rejected.total(), decoded.message)
    assert bool(answer.partial_success.error_message) == bool(decoded.rejected or decoded.mended)
    return {key: row for key, row in rows.items() if key in GOOD}


class TestTexts:
    """Bytes that are no UTF-8."""

    @SIGNALS
    @pytest.mark.parametrize("project", [None, "team"])
    def test_get_a_mark_and_nothing_else_changes(self, signal: Signal, project: str | None) -> None:
        places = [place for place, _, _ in texts_in(whole_request(signal, 1, 2))]
        for path in places:
            request = whole_request(signal, 1, 2)
            (field,) = [(holder, name) for at, holder, name in texts_in(request) if at == path]
            setattr(*field, MARKER.decode())
            body = request.SerializeToString().replace(MARKER, NO_TEXT)
            decoded = decode(body, signal, LIMITS, project=project)
            setattr(*field, NO_TEXT.decode("utf-8", "replace"))
            expected = decode(request.SerializeToString(), signal, LIMITS, project=project)
            assert decoded.payload == expected.payload, path
            assert (decoded.items, decoded.rejected) == (2, {})
            assert decoded.mended == {"text": 1 if f".{signal.items}[" in path else 2}
            assert decode(body, signal, LIMITS, project=project) == decoded
        assert len(places) > 30

    @SIGNALS
    @pytest.mark.parametrize("written", [b"\\ud800", b"\\udc00\\ud800", b"\xff", b"\xed\xa0\x80"])
    def test_in_json_get_a_mark(self, signal: Signal, written: bytes) -> None:
        request = whole_request(signal, 1, 2, 3)
        items_of(request, signal)[1].attributes[0].value.string_value = f"a {MARKER.decode()} b"
        body = orjson.dumps(as_json(request)).replace(MARKER, written)
        decoded = decode(body, signal, LIMITS, json=True)
        assert kept(decoded, signal) == without_the_second(signal)
        found = items_of(signal.request.FromString(decoded.payload), signal)[1]
        text = found.attributes[0].value.string_value
        assert (text.strip("\ufffd ab"), "\ufffd" in text) == ("", True)
        assert (decoded.rejected, decoded.mended) == ({}, {"text": 1})

    @pytest.mark.parametrize("body", [b"\xef\xbb\xbf%s", b"%s\n\n"])
    def test_marks_around_json_are_no_part_of_it(self, body: bytes) -> None:
        request = whole_request(TRACES, 1)
        decoded = decode(body % orjson.dumps(as_json(request)), TRACES, LIMITS, json=True)
        assert decoded.payload == request.SerializeToString()

    def test_texts_as_they_are_written_in_json_are_no_marks(self) -> None:
        """Pairs, and what looks like half of one, in a request that needs the second reading."""
        request = whole_request(TRACES, 1, 2, 3)
        items = items_of(request, TRACES)
        items[0].name, items[1].name = "\\ud800 \U0001f642", "\x0b raw \ufffd"
        text = orjson.dumps(as_json(request)).decode()
        text = text.replace("\U0001f642", "\\ud83d\\ude42").replace("\\u000b", "\x0b")
        text = text.replace("0.5", "NaN")
        decoded = decode(text.encode(), TRACES, LIMITS, json=True)
        found = items_of(TRACES.request.FromString(decoded.payload), TRACES)
        assert [item.name for item in found] == [item.name for item in items]
        assert (decoded.rejected, decoded.mended) == ({}, {})


@pytest.mark.parametrize(
    ("written", "stored"),
    [
        ("NaN", "json: unsupported value: NaN"),
        ('"NaN"', "json: unsupported value: NaN"),
        ("Infinity", "json: unsupported value: +Inf"),
        ("-Infinity", "json: unsupported value: -Inf"),
        ("1e400", "json: unsupported value: +Inf"),
        ("9" * 5000, "json: unsupported value: +Inf"),
    ],
)
def test_numbers_that_are_none_are_stored_as_a_text(written: str, stored: str) -> None:
    """No sum of them is spoiled: the text is none that a database reads as a number."""
    request = whole_request(TRACES, 1, 2, 3)
    items_of(request, TRACES)[1].attributes[1].value.double_value = 0.25
    body = orjson.dumps(as_json(request)).replace(b"0.25", written.encode())
    decoded = decode(body, TRACES, LIMITS, json=True)
    assert kept(decoded, TRACES) == without_the_second(TRACES)
    rows = rows_of(decoded.payload, TRACES)
    assert rows[(2).to_bytes(8, "big").hex()][11]["number"] == stored


def test_a_number_that_is_none_in_place_of_a_text_is_that_text() -> None:
    request = whole_request(TRACES, 1)
    items_of(request, TRACES)[0].attributes[0].value.string_value = MARKER.decode()
    body = orjson.dumps(as_json(request)).replace(b'"%s"' % MARKER, b"NaN")
    decoded = decode(body, TRACES, LIMITS, json=True)
    (item,) = items_of(TRACES.request.FromString(decoded.payload), TRACES)
    assert (item.attributes[0].value.string_value, decoded.rejected) == ("NaN", {})


def readable(kind: Any, data: bytes) -> bool:
    try:
        kind.FromString(data)
    except DecodeError:
        return False
    return True


def wrong_ids() -> Iterator[tuple[str, bytes]]:
    for name, size in (("trace_id", 16), ("span_id", 8)):
        for value in (b"", bytes(size), b"x" * (size - 1), b"x" * (size + 1), b"x" * 2 * size):
            yield name, value


class TestRejected:
    """An item that cannot be stored is left out and counted; the others are not touched."""

    @pytest.mark.parametrize("json", [False, True])
    @pytest.mark.parametrize(("name", "value"), list(wrong_ids()))
    def test_a_span_without_ids(self, name: str, value: bytes, json: bool) -> None:
        request = whole_request(TRACES, 1, 2, 3)
        setattr(items_of(request, TRACES)[1], name, value)
        body = sent(request, json)
        decoded = decode(body, TRACES, LIMITS, json=json)
        assert kept(decoded, TRACES) == without_the_second(TRACES)
        assert decoded.rejected == {"no_id": 1}
        assert name in decoded.message

    @SIGNALS
    @pytest.mark.parametrize("before", [2, 600])
    def test_an_item_with_too_many_attributes(self, signal: Signal, before: int) -> None:
        """Also behind more items than are looked through at a time."""
        request = whole_request(signal, *range(1, before + 2))
        attributes = items_of(request, signal)[before].attributes
        for number in range(LIMITS.max_attributes - len(attributes)):
            attributes.add(key=str(number))
        body = request.SerializeToString()
        assert decode(body, signal, LIMITS).payload is body
        attributes.add(key="one more")
        decoded = decode(request.SerializeToString(), signal, LIMITS)
        assert (decoded.items, decoded.rejected) == (before, {"excessive": 1})
        del items_of(request, signal)[before]
        assert decoded.payload == request.SerializeToString()

    @SIGNALS
    @pytest.mark.parametrize(
        ("attribute", "missing"),
        [
            (b"\x00\x00", 0),  # a field of number 0
            (b"\x0a\x01k", 1),  # an attribute that is longer than its item
            (framed(2, b"\x0a\x05a"), 0),  # a text that is longer than its value
            (deep(60), 0),
        ],
    )
    def test_an_unreadable_item(self, signal: Signal, attribute: bytes, missing: int) -> None:
        request = whole_request(signal, 1, 2, 3)
        number = (
            LogRecord.ATTRIBUTES_FIELD_NUMBER if signal is LOGS else Span.ATTRIBUTES_FIELD_NUMBER
        )
        good = items_of(request, signal)[1].SerializeToString()
        bad = good + framed(number, attribute + b" " * missing).removesuffix(b" ")
        decoded = decode(with_item(request, signal, 1, bad), signal, LIMITS)
        assert kept(decoded, signal) == without_the_second(signal)
        assert decoded.rejected == {"unreadable": 1}

    def test_a_value_that_could_be_read_alone_but_not_where_it_stands(self) -> None:
        """The parser counts the depth from the request on, and so does each that comes after."""
        request = whole_request(TRACES, 1, 2, 3)
        good = items_of(request, TRACES)[1].SerializeToString()
        spans = {levels: good + framed(9, deep(levels)) for levels in range(40, 60)}
        alone = {levels for levels, span in spans.items() if readable(Span, span)}
        bodies = {levels: with_item(request, TRACES, 1, span) for levels, span in spans.items()}
        whole = {levels for levels, body in bodies.items() if readable(TRACES.request, body)}
        assert whole < alone < set(spans)
        for levels, body in bodies.items():
            # A bad id as well, so that the spans are read one by one.
            worse = whole_request(TRACES, 4)
            items_of(worse, TRACES)[0].trace_id = b""
            decoded = decode(body + worse.SerializeToString(), TRACES, LIMITS)
            assert decoded.items == (3 if levels in whole else 2)
            assert readable(TRACES.request, decoded.payload)

    def test_an_item_whose_bounds_are_wrong_takes_only_those_after_it(self) -> None:
        request = whole_request(TRACES, 1, 2, 3)
        scope = request.resource_spans[0].scope_spans[0]
        spans = [framed(2, span.SerializeToString()) for span in scope.spans]
        damaged = framed(1, framed(2, spans[0] + b"\x12\xff\x7f" + spans[1] + spans[2]))
        decoded = decode(damaged + request.SerializeToString(), TRACES, LIMITS)
        assert (decoded.items, decoded.rejected) == (4, {"unreadable": 1})

    def test_nesting_that_one_parser_reads_and_the_next_step_does_not(self) -> None:
        item = as_json(items_of(whole_request(TRACES, 2), TRACES)[0])
        item |= {"note": "SPOILED", "name": "\ud800"}
        bodies = (
            with_second(item, TRACES).replace(b'"SPOILED"', b"[" * levels + b"NaN" + b"]" * levels)
            for levels in range(100, 900, 100)
        )
        decoded = [decode(body, TRACES, LIMITS, json=True) for body in bodies]
        assert all(kept(each, TRACES) == without_the_second(TRACES) for each in decoded)

    @SIGNALS
    @pytest.mark.parametrize("part", ["resource", "scope"])
    @pytest.mark.parametrize("json", [False, True])
    def test_all_of_an_unreadable_owner_goes(self, signal: Signal, part: str, json: bool) -> None:
        good, bad = whole_request(signal, 1), whole_request(signal, 2, 3)
        if json:
            document, ruined = as_json(good), as_json(bad)
            (resources,) = document
            (resource,) = ruined[resources]
            scopes = next(key for key in resource if key.startswith("scope"))
            holder = resource if part == "resource" else resource[scopes][0]
            holder[part] = {"attributes": {"key": "x"}}
            document[resources] += ruined[resources]
            body = orjson.dumps(document)
        else:
            owner = getattr(bad, signal.resources)[0]
            owner = owner if part == "resource" else getattr(owner, signal.scopes)[0]
            getattr(owner, part).attributes.add(key="key").value.bytes_value = MARKER
            # The length of the last value within it is one too many.
            body = bad.SerializeToString().replace(b"\x3a\x07" + MARKER, b"\x3a\x08" + MARKER)
            body = good.SerializeToString() + body
        decoded = decode(body, signal, LIMITS, json=json)
        assert rows_of(decoded.payload, signal) == rows_of(good.SerializeToString(), signal)
        assert decoded.rejected == {"unreadable": 2}

    @pytest.mark.parametrize("scopes", ["x", {}, [5], [{"spans": 5}], [{"spans": [5]}]])
    @pytest.mark.parametrize("resource", [{}, 5])
    def test_items_that_cannot_be_counted_count_as_one(self, resource: Any, scopes: Any) -> None:
        document = as_json(whole_request(TRACES, 1))
        document["resourceSpans"].append({"resource": resource, "scopeSpans": scopes})
        decoded = decode(orjson.dumps(document), TRACES, LIMITS, json=True)
        assert (decoded.items, decoded.rejected) == (1, {"unreadable": 1})

    @pytest.mark.parametrize("json", [False, True])
    def test_a_request_of_bad_spans_alone_is_refused(self, json: bool) -> None:
        request = whole_request(TRACES, 1, 2)
        for span in items_of(request, TRACES):
            span.trace_id = b""
        body = sent(request, json)
        with pytest.raises(RequestError, match="spans left out: 2"):
            decode(body, TRACES, LIMITS, json=json)


class TestTimes:
    """Times beyond those of the tables are stored as the last one."""

    @pytest.mark.parametrize("json", [False, True])
    @pytest.mark.parametrize(
        ("given", "stored"),
        [
            ((2**63 - 1, 2**64 - 2), (LATEST_TIME, LATEST_TIME)),
            ((NOW, LATEST_TIME + 1), (NOW, LATEST_TIME)),
            ((LATEST_TIME + 1, NOW), (LATEST_TIME, NOW)),
            ((0, NOW), (NOW, NOW)),
        ],
    )
    def test_of_spans(self, given: tuple[int, int], stored: tuple[int, int], json: bool) -> None:
        request = whole_request(TRACES, 1, 2, 3)
        span = items_of(request, TRACES)[1]
        span.start_time_unix_nano, span.end_time_unix_nano = given
        body = sent(request, json)
        decoded = decode(body, TRACES, LIMITS, json=json)
        assert kept(decoded, TRACES) == without_the_second(TRACES)
        span.start_time_unix_nano, span.end_time_unix_nano = stored
        assert decoded.payload == request.SerializeToString()
        assert (decoded.items, decoded.mended) == (3, {"time": 1})

    def test_of_events(self) -> None:
        request = whole_request(TRACES, 1, 2, 3)
        event = items_of(request, TRACES)[1].events[0]
        event.time_unix_nano = 2**64 - 1
        decoded = decode(request.SerializeToString(), TRACES, LIMITS)
        event.time_unix_nano = LATEST_TIME
        assert decoded.payload == request.SerializeToString()
        assert (decoded.items, decoded.mended) == (3, {"time": 1})

    @pytest.mark.parametrize("given", [(0, 0), (1, 0), (NOW, 1), (LATEST_TIME, LATEST_TIME)])
    def test_that_a_table_holds_are_kept(self, given: tuple[int, int]) -> None:
        request = whole_request(TRACES, 1)
        span = items_of(request, TRACES)[0]
        span.start_time_unix_nano, span.end_time_unix_nano = given
        body = request.SerializeToString()
        assert decode(body, TRACES, LIMITS).payload is body

    @pytest.mark.parametrize("name", ["time_unix_nano", "observed_time_unix_nano"])
    def test_of_records(self, name: str) -> None:
        request = whole_request(LOGS, 1, 2, 3)
        record = items_of(request, LOGS)[1]
        record.time_unix_nano = 0
        setattr(record, name, 2**64 - 1)
        decoded = decode(request.SerializeToString(), LOGS, LIMITS)
        assert kept(decoded, LOGS) == without_the_second(LOGS)
        assert rows_of(decoded.payload, LOGS)[(2).to_bytes(8, "big").hex()][0] == LATEST_TIME
        assert decoded.mended == {"time": 1}

    def test_the_last_one_fits_into_every_table(self, store: Store) -> None:
        request = whole_request(TRACES, 1)
        span = items_of(request, TRACES)[0]
        span.start_time_unix_nano = span.end_time_unix_nano = 2**64 - 1
        decoded = decode(request.SerializeToString(), TRACES, LIMITS)
        store.command("TRUNCATE TABLE otel_traces_trace_id_ts")
        SpanWriter(store).write([decoded.payload], token="latest")
        (row,) = store.query(
            "SELECT toUnixTimestamp(Start) AS start, toUnixTimestamp(End) AS end, "
            "(SELECT max(toUnixTimestamp(toDateTime(Timestamp) + toIntervalDay(2000))) "
            "FROM otel_traces) AS leaves FROM otel_traces_trace_id_ts"
        )
        last = LATEST_TIME // 10**9
        assert row == {"start": last, "end": last, "leaves": last + 2000 * 86_400}


@pytest.mark.parametrize(("name", "value"), list(wrong_ids()))
def test_a_record_with_a_wrong_id_belongs_to_no_span(name: str, value: bytes) -> None:
    request = whole_request(LOGS, 1, 2, 3)
    record = items_of(request, LOGS)[1]
    setattr(record, name, value)
    decoded = decode(request.SerializeToString(), LOGS, LIMITS)
    assert (decoded.items, decoded.rejected) == (3, {})
    record.ClearField(name)
    clean = rows_of(request.SerializeToString(), LOGS)
    assert rows_of(decoded.payload, LOGS) == clean
    assert decoded.mended == ({} if not any(value) else {"id": 1})


def places_in(node: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths of all values in a document."""
    inner = (
        node.items()
        if isinstance(node, dict)
        else enumerate(node if isinstance(node, list) else ())
    )
    for key, value in inner:
        yield (*path, key)
        yield from places_in(value, (*path, key))


def with_second(item: Any, signal: Signal) -> bytes:
    """A request in JSON with another second item."""
    document = as_json(whole_request(signal, 1, 3))
    items: Any = document
    for _ in range(3):
        (items,) = [each for each in items.values() if isinstance(each, list)]
        holder, items = items, items[0]
    holder.insert(1, item)
    return json.dumps(document).encode()


class TestAnything:
    """Any value anywhere in one item, and any bytes in its place."""

    @SIGNALS
    def test_every_value_in_every_place_of_an_item_in_json(self, signal: Signal) -> None:
        good = as_json(items_of(whole_request(signal, 2), signal)[0])
        expected = without_the_second(signal)
        rejected = tried = 0
        for place in places_in(good):
            for value in RUINED:
                item = copy.deepcopy(good)
                holder = item
                for key in place[:-1]:
                    holder = holder[key]
                holder[place[-1]] = value
                decoded = decode(with_second(item, signal), signal, LIMITS, json=True)
                assert kept(decoded, signal) == expected, (place, value)
                tried += 1
                rejected += decoded.rejected.total()
        assert tried / 3 < rejected < tried

    @SIGNALS
    @pytest.mark.parametrize("item", RUINED)
    def test_any_value_as_an_item_in_json(self, signal: Signal, item: Any) -> None:
        decoded = decode(with_second(item, signal), signal, LIMITS, json=True)
        assert kept(decoded, signal) == without_the_second(signal)

    @settings(max_examples=EXAMPLES, deadline=None)
    @given(data=st.data(), signal=st.sampled_from([TRACES, LOGS]))
    def test_any_bytes_as_an_item_in_protobuf(self, data: st.DataObject, signal: Signal) -> None:
        request = whole_request(signal, 1, 2, 3)
        good = items_of(request, signal)[1].SerializeToString()
        bad = data.draw(st.one_of(damaged(good), st.binary(max_size=60)))
        decoded = decode(with_item(request, signal, 1, bad), signal, LIMITS)
        assert kept(decoded, signal) == without_the_second(signal)

    def test_the_engine_reads_it_as_python_does(self, store: Store, tmp_path: Path) -> None:
        request = whole_request(TRACES, 1, 2, 3, maps=False)
        good = items_of(request, TRACES)[1].SerializeToString()
        dice, read = random.Random(SEED), 0
        for number in range(15):
            bad = bytearray(good)
            for _ in range(dice.randint(1, 3)):
                bad[dice.randrange(len(bad))] = dice.choice([0xFF, 0, dice.randrange(256)])
            payload = decode(with_item(request, TRACES, 1, bytes(bad)), TRACES, LIMITS).payload
            file = SegmentWriter(tmp_path / f"{number}.log")
            file.append([Record.of(payload, 1)])
            path = file.close(0.0).path
            found = []
            for writer, of_file in (
                (SpanWriter(store, parse_from=0), True),
                (SpanWriter(store), False),
            ):
                store.command("TRUNCATE TABLE otel_traces")
                if not (of_file and writer.write_file(path, size=1, token=f"file {number}")):
                    writer.write([payload], token=f"{of_file} {number}")
                elif of_file:
                    read += 1
                rows = store.query("SELECT * EXCEPT ReceivedAt FROM otel_traces ORDER BY SpanId")
                assert len(rows) == len(rows_of(payload, TRACES))
                found.append([row for row in rows if row["SpanId"] in GOOD])
            assert found[0] == found[1], f"MAST_TRACE_TEST_SEED={SEED}"
            assert len(found[0]) == 2
        assert read > 4


def bad_request(signal: Signal, kind: str, *, json: bool, size: int) -> bytes:
    """A request whose second item is bad, with a text of some size in the third."""
    request = whole_request(signal, 1, 2, 3)
    items = items_of(request, signal)
    items[2].attributes[0].value.string_value = "x" * size
    if kind == "text":
        items[1].attributes[0].value.string_value = MARKER.decode()
        body = sent(request, json)
        return body.replace(MARKER, NO_TEXT)
    if not json:
        return with_item(request, signal, 1, items[1].SerializeToString() + b"\x00\x00")
    items[1].attributes[0].key = MARKER.decode()
    body = orjson.dumps(as_json(request))
    return body.replace(b'"attributes":[{"key":"SPOILED"', b'"attributes":7,"x":[{"key":"y"')


async def answered(collector: Collector, signal: Signal, way: str, body: bytes, key: str) -> Any:
    """Send a request; the partial success of its answer."""
    if way == "grpc":
        content = await call(collector, body, key, f"/{signal.service}/Export")
        return signal.response.FromString(content).partial_success
    headers = JSON if way == "json" else {}
    if way == "gzip":
        headers, body = {"content-encoding": way}, gzip.compress(body)
    answer = await post(collector, body, f"/v1/{signal.name}", key, **headers)
    assert answer.status_code == 200
    if way == "json":
        return json_format.Parse(answer.content, signal.response()).partial_success
    return signal.response.FromString(answer.content).partial_success


class TestAsSent:
    """Every way into the collector and through it, up to the rows."""

    @pytest.mark.parametrize("size", [10, 300_000, 3_000_000])
    @pytest.mark.parametrize("way", ["protobuf", "json", "grpc"])
    @SIGNALS
    @pytest.mark.parametrize("kind", ["text", "unreadable"])
    async def test_the_others_are_stored_and_the_answer_counts_it(
        self,
        launch: Launch,
        store: Store,
        tmp_path: Path,
        kind: str,
        signal: Signal,
        way: str,
        size: int,
    ) -> None:
        key, line = new_key("team")
        (tmp_path / "keys").write_text(line)
        collector = await launch(keys_file=tmp_path / "keys", max_attributes=50)
        body = bad_request(signal, kind, json=way == "json", size=size)
        for _ in range(2):
            partial = await answered(collector, signal, way, body, key)
        rejected = getattr(partial, signal.rejected)
        assert rejected == (1 if kind == "unreadable" else 0)
        assert partial.error_message
        table = "otel_traces" if signal is TRACES else "otel_logs"
        rows = f"SELECT * EXCEPT ReceivedAt FROM {table} ORDER BY SpanId"
        found = await until(lambda: store.query(rows))
        assert len(found) == 3 - rejected

        metrics = collector._ingest.metrics[signal]
        transport = "grpc" if way == "grpc" else "http"
        name = "rejected" if rejected else "mended"
        label = {"reason": "unreadable"} if rejected else {"kind": "text"}
        items = "spans" if signal is TRACES else "records"
        # The second time it was known, so nothing of it was kept.
        assert metrics.value(f"{name}_{items}_total", **label) == (2 if rejected else 1)
        assert metrics.value("duplicate_requests_total", transport=transport) == 1

        store.command(f"TRUNCATE TABLE {table}")
        request = whole_request(signal, 1, 3)
        items_of(request, signal)[1].attributes[0].value.string_value = "x" * size
        clean = decode(request.SerializeToString(), signal, LIMITS, project="team").payload
        writer = SpanWriter(store) if signal is TRACES else LogWriter(store)
        writer.write([clean], token=f"{kind} {way} {size}")
        assert [row for row in found if row["SpanId"] in GOOD] == store.query(rows)


@SIGNALS
@pytest.mark.parametrize("json", [False, True])
@pytest.mark.parametrize("kind", ["text", "unreadable"])
def test_reading_item_by_item_holds_nobody_up(signal: Signal, kind: str, json: bool) -> None:
    body = bad_request(signal, kind, json=json, size=1)
    with pytest.raises(TakesLong):
        decode(body, signal, LIMITS, json=json, patient=False)
    good = whole_request(signal, 1)
    body = sent(good, json)
    assert decode(body, signal, LIMITS, json=json, patient=False).items == 1
