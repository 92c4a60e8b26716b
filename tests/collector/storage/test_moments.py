"""Times at the ends of what columns hold: stored, compared and read without an error."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from itertools import combinations, product
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import pytest
from clickhouse_connect.driver.exceptions import DataError, OperationalError
from judge.worker.stock_runs import FIRST, LAST, NOW, TIMES, StockSpan, write_stock

from mast_trace.exceptions import StorageError
from mast_trace_collector.storage import moments
from mast_trace_collector.storage.run_spans import RunSpans
from mast_trace_collector.storage.runs import spans_of
from mast_trace_collector.storage.store import PERMANENT
from mast_trace_collector.storage.transient import TRANSIENT, is_too_large, is_transient

if TYPE_CHECKING:
    from mast_trace_collector.storage import Store

UTC = timezone.utc
FAR = [
    datetime.min.replace(tzinfo=UTC),
    datetime(1677, 9, 21, 0, 12, 43, 145224, tzinfo=UTC),
    datetime(1900, 1, 1, tzinfo=UTC),
    datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC),
    datetime(1970, 1, 1, tzinfo=UTC),
    datetime(2149, 6, 7, tzinfo=UTC),
    datetime(2262, 4, 11, 23, 47, 16, 854775, tzinfo=UTC),
    datetime(2262, 4, 12, tzinfo=UTC),
    datetime.max.replace(tzinfo=UTC),
]
OLD, NEW = datetime(1970, 1, 1, tzinfo=UTC), datetime(2149, 1, 1, tzinfo=UTC)


def test_no_time_is_too_far_away_for_a_condition(store: Store) -> None:
    """Neither alone, nor with what statements add, nor on a table that is divided by days."""
    write_stock(store, [StockSpan("ab" * 16, "aa", start=NOW)])
    for kind, moment in product(("DateTime64(9)", "DateTime64(3)", "Nullable(DateTime64(3))"), FAR):
        given = {"moment": moment, "moments": [moment]}
        (row,) = store.query(
            f"SELECT countIf(Timestamp >= {{moment:{kind}}} - toIntervalHour(1)) AS Since,"
            f" countIf(Timestamp < {{moment:{kind}}} + toIntervalDay(1)) AS Until,"
            " countIf(has({moments:Array(DateTime64(9))}, Timestamp)) AS Equal FROM otel_traces",
            given,
        )
        is_early = moment <= OLD
        found = (row["Since"], row["Until"], row["Equal"])
        assert found == (int(is_early), int(not is_early), 0), (kind, moment)
        (row,) = store.query(
            f"SELECT count() AS Since FROM otel_traces WHERE Timestamp >= {{moment:{kind}}}", given
        )
        assert row["Since"] == int(is_early), f"no day is skipped before {moment} as {kind}"


def test_spans_are_looked_for_within_an_hour_of_their_runs(store: Store) -> None:
    """Also at the ends of what is stored, and beside others' runs."""
    ids = [f"{number:032x}" for number in range(len(FAR))]
    for trace, moment in zip(ids, FAR, strict=True):
        write_stock(store, [StockSpan(trace, "aa", start=moments.nanoseconds(moment))])
    for first, last in combinations(range(len(FAR)), 2):
        found = spans_of(store, ids, [(FAR[first], FAR[first]), (FAR[last], FAR[last])])
        assert {trace for _, trace in found} >= set(ids[first : last + 1])
    noon = datetime(2026, 3, 1, 12, tzinfo=UTC)
    near, far = timedelta(minutes=59), timedelta(minutes=61)
    for trace, shift in (("a" * 32, -near), ("b" * 32, near), ("c" * 32, -far), ("d" * 32, far)):
        write_stock(store, [StockSpan(trace, "aa", start=moments.nanoseconds(noon + shift))])
    found = spans_of(store, [letter * 32 for letter in "abcd"], [(noon, noon)])
    assert {trace[0] for _, trace in found} == {"a", "b"}


def test_times_are_read_in_utc_whatever_the_zone_of_the_engine(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pages and files name that zone; the embedded engine has the zone of the machine."""
    with store._clients.borrow() as client:
        monkeypatch.setattr(client, "server_tz", ZoneInfo("Asia/Tokyo"))
    (row,) = store.query("SELECT toDateTime64(0, 3) AS Fine, toDateTime(0) AS Coarse")
    assert row == dict.fromkeys(("Fine", "Coarse"), OLD)
    assert {moment.utcoffset() for moment in row.values()} == {timedelta()}


def test_every_time_is_stored_as_the_nearest_one(store: Store) -> None:
    for number, moment in enumerate(FAR):
        row = {
            "TraceId": f"{number:032x}",
            "RunStart": moment,
            "RunEnd": moment,
            "JudgedAt": datetime.now(UTC),
        }
        store.insert("mast_pattern_runs", [row])
        (found,) = store.query(
            f"SELECT RunStart, RunEnd FROM mast_pattern_runs WHERE TraceId = '{number:032x}'"
        )
        nearest = min(max(moment, FAR[1] + timedelta(microseconds=1)), FAR[6])
        assert (found["RunStart"], found["RunEnd"]) == (nearest, nearest)
        again = {**row, "RunStart": found["RunStart"], "TraceId": f"again {number}"}
        store.insert("mast_pattern_runs", [again])


def test_the_spans_of_a_run_are_read_whenever_they_begin(store: Store) -> None:
    """In pages, and by their ids with and without a time."""
    runs = list(enumerate(product(TIMES.values(), (FIRST, NOW, LAST))))
    for number, (times, beside) in runs:
        spans = (("aa", "", *times), ("bb", "", beside))
        write_stock(store, [StockSpan(f"{number:032x}", *span) for span in spans])
    for number, case in runs:
        for page_bytes in (1, 1 << 20):
            run = RunSpans(store, f"{number:032x}", page_bytes=page_bytes)
            read = [span for page in run.read() for span in page]
            assert sorted(span.span_id for span in read) == ["aa", "bb"], case
            assert all(FIRST <= span.start <= span.end <= LAST or span.start >= 0 for span in read)
        between = (min(span.start for span in read), max(span.end for span in read))
        for bounds in (None, between, (FIRST, 2**64)):
            found = {span.span_id for span in run.of(["aa", "bb", "cc"], bounds)}
            assert found == {"aa", "bb"}, (case, bounds)


def test_nanoseconds_are_exact_and_within_a_column() -> None:
    moment = datetime(2026, 3, 1, 12, 0, 0, 123457, tzinfo=UTC)
    assert moments.nanoseconds(moment) == int(moment.timestamp()) * 10**9 + 123_457_000
    assert moments.nanoseconds(moment.replace(tzinfo=None)) == moments.nanoseconds(moment)
    assert [moments.nanoseconds(moment) for moment in (FAR[0], FAR[-1])] == [FIRST, LAST]


def failed(code: int | None, kind: type[Exception]) -> StorageError:
    error = StorageError("no")
    error.__cause__ = kind("no")
    if code is not None:
        error.__cause__.code = code  # type: ignore[attr-defined]
    return error


def test_every_passing_error_is_one_of_clickhouse(store: Store) -> None:
    names = {
        code: store.query("SELECT errorCodeToName({c:Int32}) AS N", {"c": code})[0]["N"]
        for code in TRANSIENT
    }
    assert PERMANENT.isdisjoint(TRANSIENT), "what may pass is not given up"
    # Engines of other versions lack the newest ones.
    assert {code for code, name in names.items() if not name} <= set(range(730, 999))
    assert {names[241], names[159], names[202], names[210], names[242], names[999]} == {
        *(
            "MEMORY_LIMIT_EXCEEDED",
            "TIMEOUT_EXCEEDED",
            "TOO_MANY_SIMULTANEOUS_QUERIES",
            "NETWORK_ERROR",
        ),
        *("TABLE_IS_READ_ONLY", "KEEPER_EXCEPTION"),
    }


def test_every_lasting_error_is_about_the_data_of_an_insert(store: Store) -> None:
    # Older engines take a function by name only within a lambda.
    sql = "SELECT arrayMap(c -> errorCodeToName(c), {codes:Array(Int32)}) AS Names"
    (row,) = store.query(sql, {"codes": sorted(PERMANENT)})
    assert row["Names"] == [
        *("CANNOT_PARSE_TEXT", "CANNOT_PARSE_INPUT_ASSERTION_FAILED", "ATTEMPT_TO_READ_AFTER_EOF"),
        *("CANNOT_READ_ALL_DATA", "BAD_ARGUMENTS", "ILLEGAL_TYPE_OF_ARGUMENT", "TYPE_MISMATCH"),
        *("ARGUMENT_OUT_OF_BOUND", "CANNOT_CONVERT_TYPE", "CANNOT_PARSE_NUMBER", "INCORRECT_DATA"),
        *("TOO_LARGE_STRING_SIZE", "INVALID_PARTITION_VALUE"),
        *("CANNOT_INSERT_NULL_IN_ORDINARY_COLUMN", "FUNCTION_THROW_IF_VALUE_IS_NON_ZERO"),
        *("UNKNOWN_PROTOBUF_FORMAT", "VIOLATED_CONSTRAINT"),
    ]


@pytest.mark.parametrize(
    ("error", "passes", "too_large"),
    [
        (failed(241, OperationalError), True, True),
        (failed(396, OperationalError), True, True),
        (failed(159, OperationalError), True, False),
        *((failed(code, OperationalError), True, False) for code in (202, 210, 242, 999)),
        *((failed(code, OperationalError), False, False) for code in (407, 69, 27)),
        (failed(60, OperationalError), False, False),
        (failed(None, OperationalError), True, False),
        (failed(None, DataError), False, False),
        (StorageError("the store has been closed"), True, False),
        (MemoryError(), True, True),
        (OSError("too many open files"), True, False),
        (OverflowError(), False, False),
        (RecursionError(), False, False),
    ],
    ids=repr,
)
def test_an_error_passes_or_not(error: Any, passes: bool, too_large: bool) -> None:
    assert (is_transient(error), is_too_large(error)) == (passes, too_large)


def test_the_engines_own_errors_have_their_numbers(store: Store) -> None:
    with pytest.raises(StorageError) as caught:
        store.query("SELECT throwIf(1)")
    assert not is_transient(caught.value)
    with pytest.raises(StorageError) as caught:
        store.query(
            "SELECT sleep(1) SETTINGS max_execution_time = 0.1, timeout_overflow_mode = 'throw'"
        )
    assert is_transient(caught.value)
    with pytest.raises(StorageError) as caught:
        store.query(
            "SELECT groupArray(number) FROM numbers(10000000) SETTINGS max_memory_usage = 1000000"
        )
    assert is_too_large(caught.value)
