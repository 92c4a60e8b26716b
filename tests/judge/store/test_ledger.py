"""The ledger of the model's calls."""

from dataclasses import replace
from datetime import datetime, timedelta, timezone

import pytest
from judge.worker.test_worker_database import refusal

from mast_trace.exceptions import StorageError
from mast_trace_judge.store.ledger import JudgeCall, LedgerWithoutAnswers, MemoryLedger, StoreLedger


def call(trace="t1", status="ok", *, cost=0.01, at=None, **more):
    return JudgeCall(
        project="shop",
        trace_id=trace,
        judge_version="v1",
        stage="read",
        model="small-1",
        started_at=at or datetime.now(timezone.utc),
        duration_ms=1200,
        status=status,
        input_tokens=900,
        cached_tokens=100,
        output_tokens=50,
        cost_usd=cost,
        **more,
    )


@pytest.fixture(params=["memory", "store"])
def ledger(request, store):
    """Ledgers of both kinds, which keep the same promises."""
    return MemoryLedger() if request.param == "memory" else StoreLedger(store)


async def test_finds_the_answers_that_could_be_read(ledger):
    await ledger.record(call(request_hash="a", answer='{"x": 1}'))
    await ledger.record(call(status="unreadable", request_hash="b", answer=""))
    await ledger.record(call(trace="t2", request_hash="c", answer="other run"))
    assert await ledger.answers("t1", "v1") == {"a": '{"x": 1}'}
    assert await ledger.answers("t1", "v2") == {}


async def test_counts_the_answers_that_could_not_be_read(ledger):
    for _ in range(2):
        await ledger.record(call(status="unreadable", request_hash="b"))
    await ledger.record(call(status="error", request_hash="b"))
    await ledger.record(call(request_hash="a", answer="1"))
    await ledger.record(call(trace="t2", status="unreadable", request_hash="b"))
    assert await ledger.unreadable("t1", "v1") == {"b": 2}
    assert await ledger.unreadable("t1", "v2") == {}


async def test_adds_up_what_was_spent_today(ledger):
    midnight = datetime.now(timezone.utc).replace(hour=0, minute=0, second=0, microsecond=0)
    assert ledger.spent_today() == 0.0
    await ledger.record(call(cost=0.5))
    await ledger.record(call(status="unreadable", cost=0.25))
    await ledger.record(call(cost=0.125, at=midnight))
    await ledger.record(call(cost=8.0, at=midnight - timedelta(milliseconds=1)))
    assert ledger.spent_today() == pytest.approx(0.875)


async def test_calls_wait_for_a_database_that_is_away(store, monkeypatch):
    """So does one that ends while the others are being written."""
    ledger = StoreLedger(store)
    insert = store.insert

    def failing(*_arguments, **_options):
        raise StorageError("the database is away")

    monkeypatch.setattr(store, "insert", failing)
    await ledger.record(call(request_hash="a", answer="1"))
    with pytest.raises(StorageError):
        await ledger.flush()

    def meanwhile(*arguments, **options):
        monkeypatch.setattr(store, "insert", insert)
        ledger._waiting.append(call(request_hash="c", answer="3"))
        return insert(*arguments, **options)

    monkeypatch.setattr(store, "insert", meanwhile)
    await ledger.record(call(request_hash="b", answer="2"))
    await ledger.flush()
    assert stored(store) == ["a", "b", "c"]


async def test_every_call_is_a_row(store):
    ledger, more = StoreLedger(store), {"retries": 2, "error": "e", "request_hash": "a"}
    one = call(status="unreadable", sample=3, **more)
    for written in (replace(one, duration_ms=1100), one):
        await ledger.record(written)
    assert await ledger.unreadable("t1", "v1") == {"a": 1}
    assert ledger.spent_today() == pytest.approx(0.01)
    (row,) = store.query("SELECT *, toString(CallId) AS Id FROM mast_judge_calls FINAL")
    expected = {
        "Id": one.call_id, "Project": "shop", "TraceId": "t1", "JudgeVersion": "v1", "Stage": "read",
        "Model": "small-1", "DurationMs": 1200, "Status": "unreadable", "Error": "e", "Retries": 2,
        "InputTokens": 900, "CachedTokens": 100, "OutputTokens": 50, "RequestHash": "a", "Sample": 3,
        "CostUsd": pytest.approx(0.01),
    }  # fmt: skip
    assert {name: row[name] for name in expected} == expected


@pytest.mark.parametrize(
    ("failure", "kept"),
    [
        ("", ""),
        ("the model refused: order 7 is Ann's", "the model refused"),
        ("HTTP 422: order 7 is Ann's", "HTTP 422"),
        ("no connection: refused", "no connection: refused"),
        ("order 7: Field required", "the call failed, or its answer cannot be read"),
        ("order 7 said: HTTP 422", "the call failed, or its answer cannot be read"),
    ],
)
async def test_a_ledger_without_answers_keeps_no_text_of_errors(failure, kept):
    inner = MemoryLedger()
    ledger = LedgerWithoutAnswers(inner)
    await ledger.record(
        call(status="unreadable", error=failure, answer="order 7", request_hash="a")
    )
    assert [(each.error, each.answer) for each in inner.calls] == [(kept, "")]
    assert ledger.last == inner.calls[0]
    assert await ledger.unreadable("t1", "v1") == {"a": 1}
    assert ledger.spent_today() == inner.spent_today() == pytest.approx(0.01)
    await ledger.record(call(request_hash="b", answer="order 7"))
    assert await ledger.answers("t1", "v1") == {}


class Picky:
    """A store's `insert` that refuses some calls."""

    def __init__(self, store, monkeypatch, error):
        self.error, self.refused = error, {"b"}
        self._insert = store.insert
        monkeypatch.setattr(store, "insert", self)

    def __call__(self, table, rows, **more):
        if self.refused & {row["RequestHash"] for row in rows}:
            raise self.error
        return self._insert(table, rows, **more)


def stored(store):
    rows = store.query("SELECT RequestHash AS R FROM mast_judge_calls FINAL ORDER BY R")
    return [row["R"] for row in rows]


@pytest.mark.parametrize("code", [69, 241, 159])
async def test_a_refused_call_keeps_no_other_from_being_written(store, monkeypatch, caplog, code):
    """One that the database never takes is left out with the reason; one that it may take later waits."""
    ledger = StoreLedger(store)
    picky = Picky(store, monkeypatch, refusal(code))
    for request in "abc":
        await ledger.record(call(request_hash=request, answer=request))
    assert stored(store) == ["a", "c"]
    assert (await ledger.answers("t1", "v1")).get("b") == (None if code == 69 else "b")
    lost = [
        record for record in caplog.records if getattr(record, "action", "") == "judge_call_lost"
    ]
    assert len(lost) == (code == 69)
    picky.refused = set()
    await ledger.flush()
    assert stored(store) == (["a", "c"] if code == 69 else ["a", "b", "c"])


async def test_answers_that_wait_are_found_and_so_many_are_kept(store, monkeypatch):
    """No question is paid twice while the table is away; memory has an end."""
    monkeypatch.setattr("mast_trace_judge.store.ledger._MOST_WAITING", 3)
    ledger = StoreLedger(store)
    picky = Picky(store, monkeypatch, refusal(242))
    picky.refused = set("abcde")
    for request in "abcde":
        await ledger.record(call(request_hash=request, answer=request))
    assert await ledger.answers("t1", "v1") == {"c": "c", "d": "d", "e": "e"}
    picky.refused = set()
    await ledger.flush()
    assert stored(store) == ["c", "d", "e"]
