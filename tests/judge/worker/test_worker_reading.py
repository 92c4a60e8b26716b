"""The local verdict is there at once, and a model's reading replaces it."""

import asyncio
import threading
from datetime import datetime, timedelta, timezone

import pytest
from judge.llm.scripted_judge import JudgeScript, config_for
from judge.worker.stored_runs import StoredRun, invoice_run, write
from judge.worker.test_worker_model import INVOICES
from judge.worker.waiting import eventually
from scripted_llm import Reply, ScriptedLLM
from starlette.testclient import TestClient

from mast_trace_collector.storage.runs import finished_runs
from mast_trace_dashboards.queries.alerts import FAILURE_SPIKE, JUDGE_BEHIND
from mast_trace_dashboards.queries.judge import JUDGE_LAG, JUDGED_TOTALS
from mast_trace_dashboards.queries.runs import RUN_LIST
from mast_trace_dashboards.run_outcome import PROVISIONAL, READING, outcome_words
from mast_trace_dashboards.web.app import web_app
from mast_trace_judge import worker as worker_module
from mast_trace_judge.config import JudgeConfig
from mast_trace_judge.judge import Judge
from mast_trace_judge.store import verdicts as verdict_store
from mast_trace_judge.store.ledger import StoreLedger


class Gate:
    """A scripted model that answers once it may."""

    def __init__(self, *, read=INVOICES["read"]):
        self.script = JudgeScript({**INVOICES, "read": read})
        self.opened = threading.Event()

    def __call__(self, request):
        """Answer when the gate is open."""
        self.opened.wait(60)
        return self.script(request)


@pytest.fixture
def gate():
    """A model that does not answer yet."""
    made = Gate()
    yield made
    made.opened.set()


def methods(store):
    """Return the method of the newest verdict on each run."""
    rows = store.query("SELECT TraceId, Method FROM mast_latest_verdicts")
    return {int(row["TraceId"], 16): row["Method"] for row in rows}


def shown(store):
    """Return the rows of the list of runs."""
    return RUN_LIST.run(store, limit=100)


def behind(store):
    """Return for how many runs the judge is behind, and whether an hour later there is one for which it is."""
    later = datetime.now(timezone.utc) + timedelta(hours=1)
    return JUDGE_LAG.one(store)["Waiting"], JUDGE_BEHIND.one(store, until=later)["Seconds"] > 0


@pytest.fixture
async def at_work(store, worker):
    """Let workers run beside the test."""
    begun = []

    def start(server, **settings):
        config = config_for(server, judge_timeout_seconds=600)
        judge = Judge(config, ledger=StoreLedger(store))
        one = worker(judge, **settings)
        begun.append((one, asyncio.create_task(one.run()), judge))
        return one

    yield start
    for one, task, judge in begun:
        await one.stop()
        await task
        await judge.aclose()


async def test_no_run_waits_for_the_reading_of_another(store, at_work, gate):
    write(store, *(invoice_run(number) for number in range(1, 21)))
    with ScriptedLLM(gate) as server:
        one = at_work(server, worker_concurrency=3)
        await eventually(lambda: list(methods(store).values()).count("reading") == 20)
        await eventually(lambda: one.status.in_flight == 3)
        assert one.status.judged == 0
        write(store, invoice_run(21))
        await eventually(lambda: [row["Method"] for row in shown(store)] == ["reading"] * 21)
        assert {outcome_words(row).reading for row in shown(store)} == {READING}
        first = verdict_store.load_latest(store, f"{1:032x}")
        assert (first.status, first.outcome, bool(first.candidates)) == ("ok", "failure", True)
        client = TestClient(web_app(store), base_url="http://127.0.0.1")
        assert client.get("/").text.count(READING) == 21
        assert f'data-state="{READING}"' in client.get(f"/runs/{1:032x}").text
        (before,) = JUDGED_TOTALS.run(store)
        assert behind(store) == (21, True)
        gate.opened.set()
        await eventually(lambda: one.status.judged == 21)
    await eventually(lambda: {row["Method"] for row in shown(store)} == {"fused"})
    assert gate.script.asked.count("read") == 21
    assert {outcome_words(row).reading for row in shown(store)} == {""}
    assert JUDGED_TOTALS.run(store)[0]["Judged"] == before["Judged"] == 21
    assert behind(store) == (0, False)


async def test_a_reading_that_ends_makes_room_and_no_look_at_all_runs(
    store, at_work, gate, monkeypatch
):
    looks = []

    def look(*args, **how):
        looks.append(how)
        return finished_runs(*args, **how)

    monkeypatch.setattr(worker_module, "finished_runs", look)
    gate.opened.set()
    write(store, *(invoice_run(number) for number in range(1, 10)))
    with ScriptedLLM(gate) as server:
        one = at_work(server, worker_concurrency=1, worker_poll_seconds=3600.0)
        await eventually(lambda: one.status.judged == 9)
        assert len(looks) == 2  # one has found them all, the next one none
        write(store, invoice_run(10))
        one.wake()
        await eventually(lambda: one.status.judged == 10)


async def test_a_worker_that_takes_no_runs_yet_rests_between_its_looks(store, worker, monkeypatch):
    """Until others know it, it has nothing to do; a wake is one look."""
    one, cycles = worker(worker_poll_seconds=3600.0), []
    cycle = one._cycle

    async def counted(**how):
        cycles.append(how)
        return await cycle(**how)

    monkeypatch.setattr(type(one._workers), "takes", property(lambda _: False))
    monkeypatch.setattr(one, "_cycle", counted)
    task = asyncio.create_task(one.run())
    for number in (1, 2):
        await eventually(lambda: len(cycles) >= number)  # noqa: B023
        for _ in range(50):
            await asyncio.sleep(0.01)
        assert len(cycles) == number
        one.wake()
    await one.stop()
    await task


async def test_a_worker_that_ends_leaves_the_reading_to_the_next(store, at_work, worker, gate):
    write(store, *(invoice_run(number) for number in range(1, 4)))
    told = []
    with ScriptedLLM(gate) as server:
        judge = Judge(config_for(server), ledger=StoreLedger(store))
        one = worker(judge, on_verdicts=told.extend)
        task = asyncio.create_task(one.run())
        await eventually(lambda: len(methods(store)) == 3)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await judge.aclose()
        assert {verdict.method for verdict in told} == {"reading"}
        gate.opened.set()
        again = Judge(config_for(server), ledger=StoreLedger(store))
        next_one = worker(again, on_verdicts=told.extend)
        assert [await next_one.drain_once(), await next_one.drain_once()] == [3, 0]
        await again.aclose()
    assert set(methods(store).values()) == {"fused"}
    assert [verdict.method for verdict in told] == ["reading"] * 3 + ["fused"] * 3


async def test_a_run_that_changes_is_read_as_it_is_now(store, at_work, gate):
    write(store, invoice_run(1))
    with ScriptedLLM(gate) as server:
        one = at_work(server)
        await eventually(lambda: one.status.in_flight == 1)
        write(store, StoredRun(1, root=False).says("boss", "One more thing.", to="clerk"))
        await eventually(lambda: len(verdict_store.load(store, f"{1:032x}")) == 2)
        gate.opened.set()
        await eventually(lambda: one.status.judged == 1)
    newest, before = verdict_store.load(store, f"{1:032x}")
    assert (newest.method, before.method) == ("fused", "reading")
    assert [row["State"] for row in shown(store)] == ["judged"]


@pytest.mark.parametrize("reply", [Reply(status=500), Reply(text="no JSON")])
async def test_a_reading_that_fails_leaves_the_local_findings(store, worker, gate, reply):
    gate.script.answers["read"] = reply
    gate.opened.set()
    write(store, invoice_run(1))
    with ScriptedLLM(gate) as server:
        judge = Judge(config_for(server, judge_attempts=1), ledger=StoreLedger(store))
        assert await worker(judge).drain_once() == 1
        await judge.aclose()
    verdict = verdict_store.load_latest(store, f"{1:032x}")
    assert (verdict.method, verdict.status, verdict.outcome) == ("local", "ok", "failure")
    assert JUDGE_LAG.run(store)[0]["Judged"] == 1


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("reads", [False, True])
async def test_a_run_that_has_just_ended_has_a_provisional_verdict(
    store, worker, gate, monkeypatch, reads, late
):
    """No alert, pattern or reading comes of it; a run to which nothing more comes is judged once, and a model reads it once in any case."""
    judged, told, apply_rules = [], [], Judge.apply_rules

    def counted(judge, trajectory, *given):
        judged.append(trajectory)
        return apply_rules(judge, trajectory, *given)

    def counts():
        (patterns,) = store.query("SELECT count() AS runs FROM mast_pattern_runs")
        later = datetime.now(timezone.utc) + timedelta(minutes=10)
        alerts = FAILURE_SPIKE.run(store, until=later)
        return len(told), gate.script.asked.count("read"), patterns["runs"], len(alerts)

    monkeypatch.setattr(Judge, "apply_rules", counted)
    gate.opened.set()
    write(store, invoice_run(1))
    with ScriptedLLM(gate) as server:
        config = config_for(server) if reads else JudgeConfig(judge_model="")
        judge = Judge(config, ledger=StoreLedger(store))
        one = worker(judge, on_verdicts=told.extend, run_quiet_seconds=3600.0)
        assert [await one._cycle(), await one._cycle()] == [False, False]
        if late:
            write(store, StoredRun(1, root=False).says("boss", "One more thing.", to="clerk"))
            assert not await one._cycle()
        await one._beside.once()
        assert methods(store) == {1: "provisional"}
        assert [outcome_words(row).reading for row in shown(store)] == [PROVISIONAL]
        assert behind(store)[0] == 1
        assert (len(judged), counts()) == (1, (0, 0, 0, 0))
        one._config = one._config.model_copy(update={"run_quiet_seconds": 0.001})
        assert [await one.drain_once(), await one.drain_once()] == [1, 0]
        await judge.aclose()
    assert methods(store) == {1: "fused" if reads else "local"}
    assert len(judged) == 1 + (late or reads)
    assert counts() == (1 + reads, int(reads), 1, 1)
    assert behind(store)[0] == 0


@pytest.mark.parametrize("steps", [True, False])
async def test_a_run_of_which_a_span_is_missing_waits_until_it_is_quiet(store, worker, steps):
    """So does one of which no step has come: it would be shown as one that cannot be judged."""
    run = invoice_run(1) if steps else StoredRun(1)
    if steps:
        run._spans[3].parent_span_id = b"\x07" * 8
    write(store, run)
    assert not await worker(run_quiet_seconds=3600.0)._cycle()
    assert [row["State"] for row in shown(store)] == ["waiting"]
    assert await worker().drain_once() == 1


async def test_a_worker_that_ends_leaves_a_provisional_verdict_to_the_next(store, worker):
    write(store, invoice_run(1))
    await worker(run_quiet_seconds=3600.0)._cycle()
    assert methods(store) == {1: "provisional"}
    assert await worker().drain_once() == 1
    assert methods(store) == {1: "local"}
