"""The worker's promises: every finished run gets one verdict, and nothing stops the others."""

import asyncio
import threading
import time

import pytest
from judge.store.invented_replays import run
from judge.worker.stored_runs import StoredRun, invoice_run, write

from mast_trace.exceptions import StorageError
from mast_trace_collector.storage.runs import record_outcome
from mast_trace_judge import judge as judge_module
from mast_trace_judge import worker as worker_module
from mast_trace_judge.batch import chunks_of
from mast_trace_judge.store import verdicts as verdict_store
from mast_trace_judge.verdict_writer import VerdictWriter


def verdicts(store):
    """Every stored verdict, rows that were replaced included."""
    return store.query("SELECT TraceId, Fingerprint, toString(Status) AS Status FROM mast_verdicts")


async def test_judges_every_finished_run_once(store, worker):
    """Each finished run gets its verdict; looking again finds nothing left to do, and a listener's fault is its own."""
    write(store, *(invoice_run(number) for number in range(1, 31)))
    told = []

    def listens(verdicts):
        told.extend(verdicts)
        raise ValueError("the listener is broken")

    one = worker(on_verdicts=listens)
    assert await one.drain_once() == 30
    assert await one.drain_once() == 0
    assert len(told) == one.status.judged == 30
    assert len({row["TraceId"] for row in verdicts(store)}) == len(verdicts(store)) == 30
    verdict = verdict_store.load_latest(store, f"{1:032x}")
    assert verdict is not None
    assert (verdict.outcome, verdict.service, verdict.steps) == ("failure", "billing", 7)
    assert [mode.code for mode in verdict.modes][:1] == ["1.3"]
    assert verdict.abstained
    assert {candidate.agent for candidate in verdict.candidates} == {"clerk", "supervisor"}
    assert all(candidate.span_id for candidate in verdict.candidates)


async def test_leaves_runs_that_are_not_finished(store, worker):
    write(store, invoice_run(1), StoredRun(2, root=False).says("clerk", "Working on it."))
    assert await worker(run_quiet_seconds=3600.0).drain_once() == 0
    assert await worker(run_idle_seconds=3600.0).drain_once() == 1


async def test_judges_again_when_the_outcome_is_said_later(store, worker):
    write(store, invoice_run(1, outcome=""))
    one = worker()
    await one.drain_once()
    assert verdict_store.load_latest(store, f"{1:032x}").outcome == "unknown"
    record_outcome(store, f"{1:032x}", "success", "the customer agreed")
    assert await one.drain_once() == 1
    newest = verdict_store.load_latest(store, f"{1:032x}")
    assert (newest.outcome, newest.decisive, newest.candidates) == ("success", None, ())


async def test_all_runs_are_looked_at_again_when_one_may_be_due(store, worker, monkeypatch):
    write(store, *(invoice_run(number) for number in range(1, 4)))
    looked, finished = [], worker_module.finished_runs

    def looking(*given, recent, **more):
        looked.append(recent)
        return finished(*given, recent=recent, **more)

    monkeypatch.setattr(worker_module, "finished_runs", looking)
    one = worker(worker_batch=2, run_idle_seconds=60.0)
    assert [await one._cycle() for _ in range(4)] == [True, True, False, False]
    assert looked == [None, None, 960.0, 960.0]
    assert 290 < one._look_at_all - time.monotonic() <= 300
    one._look_at_all = 0.0
    await one._cycle()
    one._writer.held_off.add(("", "gone", "f"), longest=0.01)
    await asyncio.sleep(0.02)
    for _ in range(2):
        await one._cycle()
    assert looked[4:] == [None, None, 960.0]


@pytest.mark.parametrize(
    ("spans", "sizes"),
    [
        ([2000, 2000], [2]),
        ([2000, 2001], [1, 1]),
        ([9000, 1], [1, 1]),
        ([0] * 100, [100]),
        ([0] * 101, [100, 1]),
        ([], []),
    ],
)
def test_runs_are_read_in_chunks(spans, sizes):
    """A chunk has 4,000 spans and 100 runs at most; each run comes once, in their order."""
    runs = [run(number, spans=each) for number, each in enumerate(spans)]
    chunks = list(chunks_of(runs))
    assert [len(chunk) for chunk in chunks] == sizes
    assert [each for chunk in chunks for each in chunk] == runs


async def test_one_bad_run_does_not_block_the_others(store, worker, monkeypatch):
    write(store, *(invoice_run(number) for number in range(1, 4)))

    def failing(trajectory, *more):
        if trajectory.trace_id == f"{2:032x}":
            raise ZeroDivisionError("a rule divides by zero")
        return original(trajectory, *more)

    original = judge_module.judge_by_rules
    monkeypatch.setattr(judge_module, "judge_by_rules", failing)
    one = worker()
    assert await one.drain_once() == 3
    assert await one.drain_once() == 0
    bad = verdict_store.load_latest(store, f"{2:032x}")
    assert (bad.status, bad.outcome, bad.decisive) == ("unscored", "unknown", None)
    assert "a rule divides by zero" in bad.status_reason
    assert one.status.unscored == 1
    assert verdict_store.load_latest(store, f"{3:032x}").status == "ok"


async def test_tries_again_what_may_go_better(store, worker, monkeypatch):
    write(store, invoice_run(1))
    left = [OSError("too many open files")]

    def failing(trajectory, *more):
        if left:
            raise left.pop()
        return original(trajectory, *more)

    original = judge_module.judge_by_rules
    monkeypatch.setattr(judge_module, "judge_by_rules", failing)
    monkeypatch.setattr("mast_trace_judge.verdict_writer._FIRST", 0.0)
    one = worker()
    assert await one.drain_once() == 0
    assert await one.drain_once() == 1
    assert verdict_store.load_latest(store, f"{1:032x}").status == "ok"


async def test_a_run_without_steps_is_unscored(store, worker):
    write(store, StoredRun(1))
    await worker().drain_once()
    verdict = verdict_store.load_latest(store, f"{1:032x}")
    assert (verdict.status, verdict.outcome) == ("unscored", "unknown")
    assert "no steps" in verdict.status_reason


async def test_runs_until_it_is_stopped_from_another_thread(store, worker):
    """The loop judges runs that come while it waits; stop works from any thread and may be repeated."""
    judged = threading.Semaphore(0)
    one = worker(on_verdicts=lambda verdicts: [judged.release() for _ in verdicts])
    thread = threading.Thread(target=lambda: asyncio.run(one.run()))
    thread.start()
    try:
        write(store, invoice_run(1))
        assert await asyncio.to_thread(judged.acquire, True, 30)
        write(store, invoice_run(2), invoice_run(3))
        assert await asyncio.to_thread(judged.acquire, True, 30)
        assert await asyncio.to_thread(judged.acquire, True, 30)
        assert one.status.judged == 3
        assert one.status.last_beat > 0
    finally:
        await asyncio.wait_for(one.stop(), 30)
        thread.join(30)
    assert not thread.is_alive()
    await asyncio.wait_for(one.stop(), 5)


async def test_its_end_waits_for_every_verdict_that_is_half_stored():
    """One that cannot be stored does not end the wait for the others."""
    writer, stored = VerdictWriter(None, None, None), []

    async def store_one(seconds, error=None):
        await asyncio.sleep(seconds)
        if error:
            raise error
        stored.append(seconds)

    begun = store_one(0.0, StorageError("away")), store_one(0.05)
    writer._saving = {asyncio.create_task(each) for each in begun}
    await writer.finish()
    assert stored == [0.05]


async def test_cancelling_it_does_not_cut_a_verdict_off(store, worker, monkeypatch):
    """Verdicts whose storing has begun are stored although the worker is cancelled meanwhile."""
    write(store, *(invoice_run(number) for number in range(1, 6)))
    begun, go_on = threading.Event(), threading.Event()
    save = verdict_store.save

    def slow(*arguments):
        begun.set()
        assert go_on.wait(30)
        return save(*arguments)

    monkeypatch.setattr(verdict_store, "save", slow)
    task = asyncio.create_task(worker().run())
    assert await asyncio.to_thread(begun.wait, 30)
    task.cancel()
    await asyncio.sleep(0)
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert len(verdicts(store)) == 5
