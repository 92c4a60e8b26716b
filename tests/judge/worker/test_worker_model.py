"""The worker with a model: calls are made once, written down, and never made again."""

import asyncio

import pytest
from judge.llm.scripted_judge import JudgeScript, config_for, mode, point, reading, what_if
from judge.worker.stored_runs import invoice_run, write
from judge.worker.waiting import eventually
from scripted_llm import Reply, ScriptedLLM

from mast_trace_judge.judge import Judge
from mast_trace_judge.store import verdicts as verdict_store
from mast_trace_judge.store.ledger import StoreLedger

INVOICES = {
    "read": reading(point(2, '"pages": 3'), modes=[mode("3.2", [6], "add up to 20 EUR")]),
    "counterfactual": what_if(),
    "segment": {"summary": "", "errors": []},
}


@pytest.fixture
def model():
    """A scripted model that reads the invoice runs."""
    with ScriptedLLM(JudgeScript(dict(INVOICES))) as server:
        yield server


async def judged_once(store, worker, model, **settings):
    judge = Judge(config_for(model, **settings), ledger=StoreLedger(store))
    try:
        return await worker(judge).drain_once()
    finally:
        await judge.aclose()


async def test_verdicts_hold_what_both_layers_found(store, worker, model):
    """Rules and model meet in one verdict, and its cost is the sum of the ledger's."""
    write(store, invoice_run(1))
    prices = {"scripted": {"input": 1.0, "output": 4.0}}
    assert await judged_once(store, worker, model, judge_prices=prices) == 1
    verdict = verdict_store.load_latest(store, f"{1:032x}")
    assert verdict.method == "fused"
    assert {mode.code for mode in verdict.modes} >= {"1.3", "3.2"}
    assert "The model suggests it" in verdict.candidates[0].rule
    (ledger,) = store.query(
        "SELECT count() AS Calls, sum(CostUsd) AS Cost, sum(InputTokens) AS Input,"
        " countIf(Status = 'ok') AS Good FROM mast_judge_calls FINAL"
    )
    assert ledger["Calls"] == ledger["Good"] == verdict.calls == len(model.requests)
    assert ledger["Input"] == verdict.input_tokens > 0
    assert ledger["Cost"] == pytest.approx(verdict.cost_usd)
    assert verdict.cost_usd > 0


async def test_judging_again_makes_no_row_and_no_call(store, worker, model):
    write(store, *(invoice_run(number) for number in range(1, 4)))
    assert await judged_once(store, worker, model) == 3
    asked = len(model.requests)
    assert await judged_once(store, worker, model) == 0
    assert len(model.requests) == asked
    assert store.query("SELECT count() AS Rows FROM mast_verdicts FINAL")[0]["Rows"] == 3


async def test_a_lost_verdict_costs_no_call(store, worker, model):
    write(store, invoice_run(1))
    await judged_once(store, worker, model)
    first = verdict_store.load_latest(store, f"{1:032x}")
    asked = len(model.requests)
    store.command("TRUNCATE TABLE mast_verdicts")
    assert await judged_once(store, worker, model) == 1
    assert len(model.requests) == asked
    again = verdict_store.load_latest(store, f"{1:032x}")
    assert (again.modes, again.decisive, again.calls) == (first.modes, first.decisive, 0)


async def test_at_most_so_many_runs_are_read_at_a_time(store, worker):
    write(store, *(invoice_run(number) for number in range(1, 13)))
    script, most = JudgeScript(dict(INVOICES)), 0

    def slow(request):
        nonlocal most
        most = max(most, one.status.in_flight)
        reply = script(request)
        return Reply(text=reply, delay=0.05)

    with ScriptedLLM(slow) as server:
        judge = Judge(config_for(server), ledger=StoreLedger(store))
        one = worker(judge, worker_concurrency=3)
        task = asyncio.create_task(one.run())
        await eventually(lambda: one.status.judged == 12)
        await one.stop()
        await task
        await judge.aclose()
    assert 1 < most <= 3


async def test_a_dead_endpoint_leaves_local_verdicts(store, worker, model):
    write(store, *(invoice_run(number) for number in range(1, 5)))
    judge = Judge(
        config_for(model, judge_base_url="http://127.0.0.1:9/v1", judge_attempts=1),
        ledger=StoreLedger(store),
    )
    assert await worker(judge).drain_once() == 4
    await judge.aclose()
    verdict = verdict_store.load_latest(store, f"{4:032x}")
    assert (verdict.status, verdict.method, verdict.outcome) == ("ok", "local", "failure")
    assert "without the model" in verdict.status_reason
    assert verdict.candidates
