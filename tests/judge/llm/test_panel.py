"""Several models that vote."""

import dataclasses

import pytest
from judge.llm.scripted_judge import GOOD, PRICES_OF_TWO, JudgeScript, judged, mode, reading, trip
from scripted_llm import Reply

from mast_trace_judge.llm.layer import vote
from mast_trace_judge.llm.verification import ModelReading, Suggestion
from mast_trace_judge.store.ledger import StoreLedger
from mast_trace_judge.study.agreement import ALL_MODES, agreement, panel_votes
from mast_trace_judge.verdict import Evidence, ModeFinding


class Panel:
    """Each model has its own script."""

    def __init__(self, **scripts):
        self.scripts = scripts

    def __call__(self, request):
        return self.scripts[request["model"]](request)


def says(outcome, p, **more):
    return ModelReading(outcome=outcome, failure_probability=p, **more)


def reports(code, probability):
    return ModeFinding(code=code, probability=probability, evidence=Evidence.MODEL, quotes=("q",))


async def test_the_majority_decides():
    blind = JudgeScript({**GOOD, "read": reading(outcome="success", p=0.1)})
    panel = Panel(a=JudgeScript(), b=JudgeScript(), c=blind)
    run = trip(prices=PRICES_OF_TWO)
    verdict = (await judged(panel, run, judge_model="a, b,c")).verdict
    assert "reads the run as a failure" in verdict.status_reason
    assert (verdict.outcome, verdict.model) == ("unknown", "a, b, c")
    assert verdict.failure_probability == pytest.approx(1.9 / 3, abs=1e-3)
    assert "2.6" in {found.code for found in verdict.modes}


async def test_each_model_has_its_own_price():
    prices = {"a": {"input": 1.0, "output": 0.0}, "b": {"input": 3.0, "output": 0.0}}
    panel = Panel(a=JudgeScript(), b=JudgeScript())
    calls = (await judged(panel, judge_model="a,b", judge_prices=prices)).ledger.calls
    assert {call.model for call in calls} == {"a", "b"}
    for call in calls:
        assert call.cost_usd == pytest.approx(call.input_tokens * prices[call.model]["input"] / 1e6)


async def test_a_model_that_fails_does_not_silence_the_others():
    broken = JudgeScript(dict.fromkeys(GOOD, Reply(status=401, text="no such key")))
    verdict = (await judged(Panel(a=JudgeScript(), b=broken), judge_model="a,b")).verdict
    assert (verdict.method, verdict.model) == ("fused", "a")
    assert "no such key" in verdict.status_reason


async def test_where_all_fail_the_local_verdict_stands():
    broken = JudgeScript(dict.fromkeys(GOOD, "no JSON"))
    panel = Panel(a=broken, b=broken)
    verdict = (await judged(panel, trip(outcome="failure"), judge_model="a,b")).verdict
    assert (verdict.method, verdict.outcome) == ("local", "failure")


def test_no_majority_is_no_outcome():
    assert vote([says("success", 0.1), says("failure", 0.9)]).outcome == "unknown"
    two = [says("failure", 0.9), says("failure", 0.8)]
    assert vote([says("unknown", 0.5), *two]).outcome == "failure"


def test_half_of_the_models_carry_a_mode():
    """A mode that fewer than half report is left out; silence counts as a probability of 0."""
    readings = [
        says("failure", 0.9, modes=(reports("1.3", 0.8), reports("2.6", 0.6))),
        says("failure", 0.9, modes=(reports("1.3", 0.6),)),
        *(says("failure", 0.9),) * 2,
    ]
    (carried,) = vote(readings).modes
    assert (carried.code, carried.probability) == ("1.3", pytest.approx(1.4 / 4, abs=1e-3))


def test_the_weights_of_suggested_steps_are_averaged_over_all():
    """The surest reading words them, and says why there is no single one."""
    both = (Suggestion(3, "sum"), Suggestion(4, "", weight=0.5))
    one = says("failure", 0.9, suggestions=both, undecided="nothing")
    other = says("failure", 0.9, suggestions=(Suggestion(4, "total"),), confidence=0.9)
    other = dataclasses.replace(other, undecided="several")
    silent = says("failure", 0.9)
    voted = vote([one, other, silent])
    assert (voted.undecided, voted.confidence) == ("several", 0.9)
    first, second = voted.suggestions
    assert (first.step, first.reason, first.weight) == (4, "total", pytest.approx(0.5))
    assert (second.step, second.reason, second.weight) == (3, "sum", pytest.approx(1 / 3))


async def test_the_ledger_tells_how_far_the_models_agree(store):
    alone = JudgeScript({**GOOD, "read": reading(modes=[mode("3.2", [5], "I agree")])})
    calm = JudgeScript({**GOOD, "read": reading(outcome="success", p=0.1)})
    panel = Panel(a=JudgeScript(), b=alone, c=calm)
    result = await judged(panel, judge_model="a,b,c", ledger=StoreLedger(store))
    version = result.verdict.judge_version
    votes = panel_votes(store, version)
    named = {
        model: [c for c, yes in next(iter(runs.values())).items() if yes]
        for model, runs in votes.items()
    }
    assert named == {"a": ["2.6"], "b": ["3.2"], "c": []}
    overall = [one for one in agreement(votes) if one.subject == ALL_MODES]
    assert [one.annotators for one in overall] == [("a", "b"), ("a", "c"), ("b", "c")]
    assert [one.observed for one in overall] == [pytest.approx(n / 14) for n in (12, 13, 13)]
