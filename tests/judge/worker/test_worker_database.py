"""The worker while the database is down."""

import asyncio
from contextlib import nullcontext

import pytest
from clickhouse_connect.driver.exceptions import DatabaseError
from judge.worker.stored_runs import invoice_run, write
from judge.worker.waiting import eventually

from mast_trace.exceptions import StorageError
from mast_trace_collector.storage import runs
from mast_trace_collector.storage.transient import TRANSIENT
from mast_trace_judge import batch, verdict_writer
from mast_trace_judge import worker as worker_module
from mast_trace_judge.config import JudgeConfig
from mast_trace_judge.judge import Judge
from mast_trace_judge.store import verdicts as verdict_store
from mast_trace_judge.store.apart import apart
from mast_trace_judge.study.rejudge import rejudge


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
    await eventually(lambda: switch.failures >= 3 and one.status.problem)
    assert (one.status.problem, one.status.judged) == ("the database is away", 0)
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
    one = worker(worker_retry_max_seconds=0.05)
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


def refusal(code):
    """An error with ClickHouse's number, as a store raises it; without one, no answer came."""
    error = StorageError("the database says no")
    error.__cause__ = DatabaseError("no")
    error.__cause__.code = code
    return error


BAD = f"{3:032x}"
PASSING = {None, *TRANSIENT}


class Poison:
    """Lets each statement fail that concerns one run, as long as ``on``."""

    def __init__(self, monkeypatch, store, way, error):
        self.on, self.failures = True, 0
        insert = store.insert

        def refuse(applies):
            if self.on and applies:
                self.failures += 1
                raise error

        def spans_of(store, trace_ids):
            refuse(way == "reading" and BAD in trace_ids)
            return runs.spans_of(store, trace_ids)

        def read_alone(store, run):
            refuse(way == "reading" and run.trace_id == BAD)
            return read(store, run)

        def inserted(table, rows, **more):
            of_bad = [row for row in rows if row.get("TraceId") == BAD]
            refuse(way == "storing" and table == "mast_verdicts" and of_bad[0:1])
            refuse(way == "scores" and any(row.get("Status") == "ok" for row in of_bad))
            return insert(table, rows, **more)

        read = batch.read_alone
        monkeypatch.setattr(batch, "spans_of", spans_of)
        monkeypatch.setattr(batch, "read_alone", read_alone)
        monkeypatch.setattr(store, "insert", inserted)


def statuses(store):
    return {
        row["TraceId"]: row["S"]
        for row in store.query("SELECT TraceId, toString(Status) AS S FROM mast_verdicts FINAL")
    }


@pytest.mark.parametrize("code", [407, 241, 159, None])
@pytest.mark.parametrize("way", ["reading", "scores"])
async def test_a_run_is_unscored_for_what_it_breaks_alone(store, worker, monkeypatch, way, code):
    """The others are judged at once; after an error that may pass it waits, and is judged later."""
    write(store, *(invoice_run(number) for number in range(1, 6)))
    poison = Poison(monkeypatch, store, way, refusal(code))
    monkeypatch.setattr(verdict_writer, "_FIRST", 0.0)
    one = worker(worker_patterns=False)
    await one.drain_once()
    others = {trace: status for trace, status in statuses(store).items() if trace != BAD}
    assert list(others.values()) == ["ok"] * 4
    if code not in PASSING:
        assert statuses(store)[BAD] == "unscored"
        assert await one.drain_once() == 0
        (verdict,) = verdict_store.load(store, BAD)
        assert "the database says no" in verdict.status_reason
        return
    assert BAD not in statuses(store)
    assert one.status.held_off == 1
    for number in range(6, 9):
        write(store, invoice_run(number))
        await one.drain_once()
        assert statuses(store)[f"{number:032x}"] == "ok"
    assert poison.failures > 1
    assert one.status.unscored == 0
    poison.on = False
    await one.drain_once()
    assert statuses(store)[BAD] == "ok"
    assert one.status.held_off == 0


@pytest.mark.parametrize("code", [407, 241])
async def test_a_run_whose_every_verdict_is_refused_stops_nobody(store, worker, monkeypatch, code):
    """Not even its unscored verdict is taken: it waits, and is not tried in each cycle."""
    write(store, *(invoice_run(number) for number in range(1, 6)))
    poison = Poison(monkeypatch, store, "storing", refusal(code))
    one = worker(worker_patterns=False)
    assert await one.drain_once() == 4
    tried = poison.failures
    write(store, invoice_run(6))
    assert await one.drain_once() == 1
    assert poison.failures == tried
    assert one.status.held_off == 1
    assert BAD not in statuses(store)


@pytest.mark.parametrize("way", ["scores", "storing"])
async def test_a_run_that_comes_alone_and_fails_holds_none_up(store, worker, monkeypatch, way):
    """An error that may pass tells nothing where no other verdict was stored; the next run is judged in its cycle."""
    write(store, invoice_run(3))
    Poison(monkeypatch, store, way, refusal(159))
    one = worker(worker_patterns=False)
    with pytest.raises(StorageError):
        await one.drain_once()
    write(store, invoice_run(4))
    assert await one.drain_once() == 1
    assert statuses(store) == {f"{4:032x}": "ok"}


@pytest.mark.parametrize(
    ("broken", "wrong", "blamed", "tries"),
    [
        ("", "", "", 1),
        ("1", "", "1", 6),
        ("4", "", "4", 6),
        ("45", "", "45", 6),
        ("134", "", "134", 6),
        ("12", "", None, 3),
        ("123", "", None, 3),
        ("12345", "", None, 3),
        ("3", "1245", None, 6),
    ],
)
def test_two_failures_before_any_success_are_the_databases(broken, wrong, blamed, tries):
    """Nothing is then said about any of five things, and the others are not even tried. Nor about one beside others that are wrong."""
    asked, refused = [], []

    def written(things):
        asked.append(things)
        for these, code in ((broken, 159), (wrong, 69)):
            if set(things) & set(these):
                raise refusal(code)

    with pytest.raises(StorageError) if blamed is None else nullcontext():
        apart("12345", written, lambda thing, _: refused.append(thing))
    assert ("".join(refused), len(asked)) == (blamed or wrong, tries)


async def test_a_missing_table_blames_no_run(store, worker, monkeypatch):
    """An error about all runs, such as a table that another version has not made yet, is the database's."""
    write(store, *(invoice_run(number) for number in range(1, 4)))

    def failing(store, trace_ids):
        raise refusal(60)

    monkeypatch.setattr(batch, "spans_of", failing)
    one = worker()
    with pytest.raises(StorageError):
        await one.drain_once()
    assert statuses(store) == {}
    monkeypatch.undo()
    assert await worker().drain_once() == 3


async def test_an_error_that_is_not_the_databases_ends_no_worker(store, worker, monkeypatch):
    """A look for runs may raise anything: the worker says so and looks again."""
    write(store, invoice_run(1))
    left = [OverflowError("date value out of range"), ValueError("a row"), UnicodeError("a text")]
    finished = worker_module.finished_runs

    def failing(*args, **more):
        if left:
            raise left.pop()
        return finished(*args, **more)

    monkeypatch.setattr(worker_module, "finished_runs", failing)
    one = worker()
    task = asyncio.create_task(one.run())
    await eventually(lambda: one.status.judged == 1)
    await one.stop()
    await task
    assert left == []


async def test_a_verdict_that_the_database_loses_is_not_given_each_time(store, worker, monkeypatch):
    """Such a run would take its place in the batch of each cycle, before the others."""
    write(store, *(invoice_run(number) for number in range(1, 4)))
    finished = worker_module.finished_runs
    first = finished(store, judge_version="v", quiet=0.0, limit=2)

    def blind(*args, limit, **more):
        return [*first, *finished(*args, limit=limit, **more)][:limit]

    monkeypatch.setattr(worker_module, "finished_runs", blind)
    one = worker(worker_batch=2)
    assert [await one.drain_once() for _ in range(4)] == [2, 2, 1, 0]
    assert len(statuses(store)) == 3


@pytest.mark.parametrize("code", [407, 159, 241])
@pytest.mark.parametrize("way", ["reading", "scores"])
async def test_judging_on_request_blames_a_run_for_its_fault_alone(store, monkeypatch, way, code):
    """`judge run --since` as well stores the others, and leaves a run out that may be judged later."""
    write(store, *(invoice_run(number) for number in range(1, 6)))
    Poison(monkeypatch, store, way, refusal(code))
    judged = [verdict.trace_id async for verdict in rejudge(store, Judge(JudgeConfig()))]
    assert len(judged) == len(statuses(store)) == (5 if code == 407 else 4)
    assert statuses(store).pop(BAD, None) == ("unscored" if code == 407 else None)
    assert list(statuses(store).values()).count("ok") == 4
