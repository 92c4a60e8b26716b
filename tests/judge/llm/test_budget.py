"""The cost limits of judging."""

import asyncio
import datetime as dt
import json

import pytest
from judge.llm.scripted_judge import JudgeScript, config_for, judged, run_of, trip
from scripted_llm import ScriptedLLM

from mast_trace.exceptions import BudgetExhausted, ConfigurationError
from mast_trace_judge.config import JudgeConfig
from mast_trace_judge.judge import Judge
from mast_trace_judge.llm.budget import DailyCap, Price, RunBudget, Tokens
from mast_trace_judge.store.ledger import MemoryLedger

PRICES = {"scripted": {"input": 1.0, "output": 4.0, "cached": 0.1}}


async def test_a_run_over_its_budget_has_the_local_verdict():
    result = await judged(JudgeScript(), trip(outcome="failure"), judge_max_tokens_per_run=500)
    assert result.requests == []
    assert (result.verdict.method, result.verdict.outcome) == ("local", "failure")
    assert "500" in result.verdict.status_reason
    assert result.verdict.candidates


async def test_a_budget_that_ends_on_the_way_keeps_what_was_found():
    """The reading counts although there is nothing left for the other questions."""
    script = JudgeScript()
    failed = trip(outcome="failure")
    result = await judged(script, failed, judge_max_tokens_per_run=4700, judge_candidates=2)
    assert script.asked == ["read"]
    assert result.verdict.method == "fused"
    assert "step 3 was not tried" in result.verdict.status_reason
    used = result.verdict.input_tokens + result.verdict.output_tokens
    assert used <= 4700


async def test_costs_follow_the_price_table():
    result = await judged(JudgeScript(), judge_prices=PRICES)
    verdict = result.verdict
    expected = (verdict.input_tokens * 1.0 + verdict.output_tokens * 4.0) / 1e6
    assert verdict.cost_usd == pytest.approx(expected)
    assert verdict.cost_usd == pytest.approx(sum(call.cost_usd for call in result.ledger.calls))


@pytest.mark.parametrize(
    ("tokens", "cost"),
    [
        (Tokens(input=1_000_000), 1.0),
        (Tokens(input=1_000_000, cached=400_000), 0.64),
        (Tokens(input=1_000_000, cached=1_000_000), 0.1),
        (Tokens(output=1_000_000), 4.0),
    ],
)
def test_cached_tokens_have_their_own_price(tokens, cost):
    """They are among the input; without a price of their own they cost what input costs."""
    assert Price(input=1.0, output=4.0, cached=0.1).of(tokens) == pytest.approx(cost)
    dear = Price(input=1.0, output=4.0).of(tokens)
    assert dear == pytest.approx((tokens.input + 4 * tokens.output) / 1e6)
    free = Price(input=1.0, output=4.0, cached=0.0).of(tokens)
    assert free == pytest.approx((tokens.input - tokens.cached + 4 * tokens.output) / 1e6)
    assert tokens.total == tokens.input + tokens.output


async def test_the_daily_cap_stops_calls_and_not_verdicts():
    ledger = MemoryLedger()
    with ScriptedLLM(JudgeScript()) as server:
        config = config_for(server, judge_prices=PRICES, judge_max_usd_per_day=0.001)
        judge = Judge(config, ledger=ledger)
        run = trip(outcome="failure")
        first = await judge.judge(run_of(run, f"{1:032x}"), run)
        asked = len(server.requests)
        second = await judge.judge(run_of(run, f"{2:032x}"), run)
        assert len(server.requests) == asked > 0
        restarted = Judge(config, ledger=ledger)
        third = await restarted.judge(run_of(run, f"{3:032x}"), run)
        assert len(server.requests) == asked
        await judge.aclose()
        await restarted.aclose()
    assert first.method == "fused"
    for verdict in (second, third):
        assert (verdict.method, verdict.outcome) == ("local", "failure")
        assert "the day's cap of 0.00 USD is reached" in verdict.status_reason


@pytest.mark.parametrize("before", [0.4, 0.0])
@pytest.mark.parametrize("first", ["asked", "ended"])
def test_the_cap_is_a_days_and_begins_anew_at_midnight(before, first):
    """Other processes' cost of today counts; a call that ends after midnight is the new day's."""
    day = dt.date(2026, 3, 1)
    cap = DailyCap(1.0, spent_today=lambda: before, today=lambda: day)
    cap.check()
    cap.add(1.0 - before - 0.125)
    cap.check()
    cap.add(0.125)
    with pytest.raises(BudgetExhausted):  # at the cap exactly
        cap.check()
    day = dt.date(2026, 3, 2)
    if first == "asked":
        cap.check()
    cap.add(0.75)
    cap.check()
    cap.add(0.25)
    with pytest.raises(BudgetExhausted):
        cap.check()


def test_a_cap_needs_prices(monkeypatch):
    monkeypatch.setenv("MAST_TRACE_JUDGE_MODEL", "big-1,small-1")
    monkeypatch.setenv("MAST_TRACE_JUDGE_MAX_USD_PER_DAY", "5")
    monkeypatch.setenv("MAST_TRACE_JUDGE_PRICES", json.dumps({"big-1": {"input": 1, "output": 2}}))
    with pytest.raises(ConfigurationError, match="price of small-1"):
        JudgeConfig.load()


def test_calls_at_the_same_time_share_the_budget():
    """Reserved tokens are not available to another call; unused ones are returned."""
    budget = RunBudget(100)
    budget.reserve(60)
    with pytest.raises(BudgetExhausted, match="40 of the run's 100 are left"):
        budget.reserve(50)
    budget.settle(60, 10)
    assert (budget.used, budget.reserved) == (10, 0)
    budget.reserve(90)
    assert budget.left == 0


async def test_judging_again_asks_nothing_again():
    ledger = MemoryLedger()
    with ScriptedLLM(JudgeScript()) as server:
        verdicts = []
        for _ in range(2):
            judge = Judge(config_for(server), ledger=ledger)
            verdicts.append(await judge.judge(run_of(trip()), trip()))
            await judge.aclose()
            asked = len(server.requests)
        assert asked == verdicts[0].calls > 0
    first, second = ((each.modes, each.decisive, each.outcome) for each in verdicts)
    assert (second, verdicts[1].calls) == (first, 0)


async def test_another_content_is_asked_about_again():
    ledger = MemoryLedger()
    with ScriptedLLM(JudgeScript()) as server:
        judge = Judge(config_for(server), ledger=ledger)
        await judge.judge(run_of(trip()), trip())
        asked = len(server.requests)
        await judge.judge(run_of(trip()), trip(termination_reason="completed"))
        assert len(server.requests) > asked
        await judge.aclose()
    assert asyncio.all_tasks() == {asyncio.current_task()}
