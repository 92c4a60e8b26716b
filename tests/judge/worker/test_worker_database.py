"""The worker while the database is down."""

import asyncio

from judge.worker.stored_runs import invoice_run, write
from judge.worker.waiting import eventually

from mast_trace.exceptions import StorageError
from mast_trace_judge import batch
from mast_trace_judge.store import verdicts as verdict_store


class Switch:
    """Lets a store's statements fail while it is off."""

    def __init__(self, store, monkeypatch):
        self.off = False
        self.failures = 0
        for name in ("query", "insert"):
            monkeypatch.setattr(store, name, self._guarded(getattr(store, name)))

    def _guarded(self, call):
        def guarded(*arguments, **options):
            if self.off:
                self.failures += 1
                raise StorageError("the database is away")
            return call(*arguments, **options)

        return guarded


async def test_goes_on_when_the_database_comes_back(store, worker, monkeypatch):
    """While the database is away the worker says so and waits; then it judges what is due."""
    write(store, *(invoice_run(number) for number in range(1, 4)))
    switch = Switch(store, monkeypatch)
    switch.off = True
    one = worker(worker_retry_max_seconds=0.2)
    task = asyncio.create_task(one.run())
    await eventually(lambda: switch.failures >= 3)
    assert one.status.problem == "the database is away"
    assert one.status.judged == 0
    switch.off = False
    await eventually(lambda: one.status.judged == 3)
    assert one.status.problem == ""
    await one.stop()
    await task
    rows = store.query("SELECT DISTINCT TraceId FROM mast_verdicts WHERE Status = 'ok'")
    assert len(rows) == 3


async def test_no_run_is_blamed_for_the_database(store, worker, monkeypatch):
    """Runs that cannot be stored stay due, however often, and are never unscored for it."""
    write(store, invoice_run(1))
    save, failures, away = verdict_store.save, [], True

    def failing(*arguments):
        if away:
            failures.append(arguments)
            raise StorageError("the database is away")
        return save(*arguments)

    monkeypatch.setattr(verdict_store, "save", failing)
    one = worker(worker_retry_max_seconds=0.05, worker_attempts=1)
    task = asyncio.create_task(one.run())
    await eventually(lambda: len(failures) >= 3 and one.status.problem)
    assert one.status.problem == "the database is away"
    assert (one.status.judged, one.status.unscored) == (0, 0)
    assert verdict_store.load(store, f"{1:032x}") == []
    away = False
    await eventually(lambda: one.status.judged == 1)
    await one.stop()
    await task
    (verdict,) = verdict_store.load(store, f"{1:032x}")
    assert verdict.status == "ok"
    assert one.status.unscored == 0


async def test_a_run_that_cannot_be_read_does_not_hold_up_its_chunk(store, worker, monkeypatch):
    """If the database reads all runs but one, that one is unscored and the others are judged."""
    write(store, *(invoice_run(number) for number in range(1, 5)))
    spans_of = batch.spans_of

    def failing(store, trace_ids):
        if f"{3:032x}" in trace_ids:
            raise StorageError("memory limit exceeded")
        return spans_of(store, trace_ids)

    read_alone = batch.read_alone

    def failing_alone(store, run):
        if run.trace_id == f"{3:032x}":
            raise StorageError("memory limit exceeded")
        return read_alone(store, run)

    monkeypatch.setattr(batch, "spans_of", failing)
    monkeypatch.setattr(batch, "read_alone", failing_alone)
    one = worker(worker_attempts=1)
    assert await one.drain_once() == 4
    assert verdict_store.load_latest(store, f"{2:032x}").status == "ok"
    unread = verdict_store.load_latest(store, f"{3:032x}")
    assert unread.status == "unscored"
    assert "memory limit exceeded" in unread.status_reason
