"""One model that reads a run several times."""

import json
import threading
from datetime import datetime, timezone

import pytest
from judge.llm.scripted_judge import (
    GOOD,
    PRICES_OF_TWO,
    JudgeScript,
    judged,
    mode,
    point,
    reading,
    trip,
)
from scripted_llm import Reply

from mast_trace.exceptions import ConfigurationError
from mast_trace_judge.config import JudgeConfig
from mast_trace_judge.store.ledger import JudgeCall, MemoryLedger, StoreLedger
from mast_trace_judge.store.verdicts import save
from mast_trace_judge.study.agreement import (
    equal_pairs,
    krippendorff_alpha,
    panel_votes,
    reading_votes,
    self_consistency,
)

THREE = {"judge_samples": 3, "judge_temperature": 1.0}


QUOTES = {1: "Find the prices", 3: "181 EUR a night", 4: "together 939 EUR", 5: "I agree"}
CALM = reading(outcome="success", p=0.1)


class Wavering(JudgeScript):
    """A model whose readings differ; readings at the same time come in any order.

    Attributes:
        in_turn: the answers of the first reading, of the second and so on; then as ever.
    """

    def __init__(self, *in_turn):
        super().__init__()
        self.in_turn = list(in_turn)
        self._turn = threading.Lock()

    def __call__(self, request):
        with self._turn:
            answer = self.in_turn.pop(0) if self.in_turn else None
        if answer is None:
            return super().__call__(request)
        return answer if isinstance(answer, Reply) else json.dumps(answer)


def blames(step, **more):
    """A reading that sees the decisive error in a step."""
    return reading(point(step, QUOTES[step]), **more)


async def test_one_model_is_asked_as_often_as_set():
    script = JudgeScript()
    result = await judged(script, trip(outcome="failure"), **THREE)
    verdict = result.verdict
    assert script.asked == ["read"] * 3
    assert (verdict.readings, verdict.agreeing, verdict.model) == (3, 3, "scripted")
    assert {call.sample for call in result.ledger.calls} == {1, 2, 3}
    assert len({call.request_hash for call in result.ledger.calls}) == len(result.ledger.calls)
    assert verdict.calls == len(result.requests) == len(result.ledger.calls)
    assert {request["temperature"] for request in result.requests} == {1.0}


async def test_readings_vote_and_the_agreement_is_told():
    model = Wavering(blames(3), blames(4), blames(3))
    verdict = (await judged(model, trip(outcome="failure"), **THREE)).verdict
    assert (verdict.candidates[0].step, verdict.agreeing, verdict.readings) == (3, 2, 3)


@pytest.mark.parametrize(
    ("other", "outcome", "step"),
    [(blames(3), None, None), (blames(4), None, "3 in 2, 4 in 1"), (CALM, "failure in 2", "none")],
)
async def test_readings_that_differ_on_outcome_or_step_are_named(other, outcome, step):
    model = Wavering(blames(3), other, blames(3))
    verdict = (await judged(model, trip(), **THREE)).verdict
    for what, said in (("outcome", outcome), ("step", step)):
        told = verdict.status_reason.partition(f"readings differ on the {what}: ")[2]
        assert (told == "") == (said is None)
        assert (said or "") in told


async def test_a_mode_needs_half_of_the_readings():
    once, twice = mode("3.2", [5], "I agree"), mode("2.3", [4], "together 939 EUR")
    model = Wavering(blames(3, modes=[once, twice]), blames(3, modes=[twice]), blames(3))
    run = trip(outcome="failure", prices=PRICES_OF_TWO)
    verdict = (await judged(model, run, **THREE)).verdict
    assert {each.code for each in verdict.modes} == {"2.3"}


async def test_a_failing_reading_leaves_the_others():
    withheld = Reply(status=451, text="not to be had")
    model = Wavering(blames(3), withheld, blames(3))
    verdict = (await judged(model, trip(outcome="failure"), **THREE)).verdict
    assert (verdict.method, verdict.readings, verdict.agreeing) == ("fused", 2, 2)
    assert verdict.status_reason.count("not to be had") == 1


async def test_where_no_reading_succeeds_the_local_verdict_stands():
    broken = JudgeScript(dict.fromkeys(GOOD, Reply(status=401, text="no such key")))
    verdict = (await judged(broken, trip(outcome="failure"), **THREE)).verdict
    assert (verdict.method, verdict.readings) == ("local", 0)
    assert "no such key" in verdict.status_reason


async def test_there_are_as_many_readings_as_the_tokens_allow():
    one = (await judged(JudgeScript(), trip(outcome="failure"))).verdict
    assert (one.readings, one.agreeing) == (1, 1)
    limit = round(2.5 * (one.input_tokens + one.output_tokens))
    settings = {"judge_max_tokens_per_run": limit, **THREE}
    verdict = (await judged(JudgeScript(), trip(outcome="failure"), **settings)).verdict
    assert verdict.readings == 2
    assert f"read the run 2 instead of 3 times: more would exceed the run's {limit} tokens" in (
        verdict.status_reason
    )
    assert verdict.input_tokens + verdict.output_tokens <= limit


async def test_every_model_of_a_panel_has_one_voice():
    """A model with a failed reading weighs no less: models vote after their readings have."""
    withheld = Reply(status=451, text="not to be had")
    scripts = {
        "a": Wavering(blames(3), withheld, withheld),
        "b": Wavering(*[CALM] * 3),
        "c": Wavering(),
    }

    def panel(request):
        return scripts[request["model"]](request)

    verdict = (await judged(panel, trip(), judge_model="a,b,c", **THREE)).verdict
    assert "reads the run as a failure" in verdict.status_reason
    assert (verdict.model, verdict.readings) == ("a, b, c", 7)


@pytest.mark.parametrize(
    ("steps", "settings", "agreeing"), [((3, 4, 3), THREE, 2), ((3, 4), {"judge_model": "a,b"}, 1)]
)
async def test_paid_readings_are_not_asked_again(steps, settings, agreeing):
    ledger = MemoryLedger()
    model = Wavering(*map(blames, steps))
    first = await judged(model, trip(outcome="failure"), ledger=ledger, **settings)
    second = await judged(JudgeScript(), trip(outcome="failure"), ledger=ledger, **settings)
    assert second.requests == []
    assert second.verdict.agreeing == first.verdict.agreeing == agreeing
    assert second.verdict.candidates == first.verdict.candidates


async def test_a_models_agreement_with_itself_is_measured(store):
    model = Wavering(GOOD["read"], blames(3, modes=[mode("3.2", [5], "I agree")]), CALM)
    result = await judged(model, trip(outcome="failure"), ledger=StoreLedger(store), **THREE)
    save(store, [result.verdict])
    version = result.verdict.judge_version
    (votes,) = reading_votes(store, version)["scripted"].values()
    assert sorted(votes[n].outcome for n in (1, 2, 3)) == ["failure", "failure", "success"]
    assert sorted(map(sorted, (votes[n].modes for n in (1, 2, 3)))) == [[], ["2.6"], ["3.2"]]
    (fused,) = panel_votes(store, version)["scripted"].values()
    assert not any(fused.values())
    (found,) = self_consistency(store, version)
    assert (found.model, found.runs, found.readings) == ("scripted", 1, 3)
    assert found.outcome == pytest.approx(1 / 3)
    assert found.modes is not None
    assert found.modes < 0.1
    assert found.step == pytest.approx(result.verdict.agreeing / 3)
    once = await judged(JudgeScript(), ledger=StoreLedger(store))
    assert self_consistency(store, once.verdict.judge_version) == []


async def test_votes_are_of_readable_readings_of_each_projects_run(store):
    """One of two readings suffices; harmless modes, cut answers and other questions have no vote."""
    found = blames(3, modes=[mode("2.6", [3], "x"), {**mode("1.3", [3], "x"), "harmless": True}])
    wrong = json.dumps(blames(3, modes=[mode("3.2", [3], "x")]))
    of_run = {"project": "one", "answer": json.dumps(found)}
    rows = [
        {**of_run, "sample": 1},
        {**of_run, "sample": 2, "answer": json.dumps(CALM)},
        {**of_run, "sample": 3, "answer": wrong, "status": "unreadable"},
        {**of_run, "sample": 4, "answer": wrong, "stage": "counterfactual"},
        {**of_run, "sample": 1, "answer": wrong, "project": "two"},
    ]
    usual = {"stage": "read", "model": "m", "status": "ok", "duration_ms": 1, "trace_id": "a" * 32}
    ledger, now = StoreLedger(store), datetime.now(timezone.utc)
    for row in rows:
        await ledger.record(JudgeCall(**usual | row, judge_version="v", started_at=now))
    votes = panel_votes(store, "v")["m"]
    shown = {run: [code for code, yes in votes[run].items() if yes] for run in votes}
    assert shown == {f"one/{'a' * 32}": ["2.6"], f"two/{'a' * 32}": ["3.2"]}
    (of_itself,) = self_consistency(store, "v")
    assert (of_itself.runs, of_itself.readings) == (1, 2)


def test_samples_at_temperature_zero_are_refused():
    """Repeated answers would look like agreement."""
    with pytest.raises(ConfigurationError, match="needs a judge_temperature above 0"):
        JudgeConfig.load(judge_samples=2)
    assert JudgeConfig(judge_samples=2, judge_temperature=None).judge_samples == 2


def test_alpha_is_krippendorffs():
    """The nominal example of Krippendorff (2011), "Computing Krippendorff's Alpha-Reliability", C."""
    rated = [
        [1, 1, 1], [2, 2, 3, 2], [3, 3, 3, 3], [3, 3, 3, 3], [2, 2, 2, 2], [1, 2, 3, 4],
        [4, 4, 4, 4], [1, 1, 2, 1], [2, 2, 2, 2], [5, 5, 5], [1, 1],
    ]  # fmt: skip
    assert krippendorff_alpha(rated) == pytest.approx(0.743, abs=5e-4)
    assert krippendorff_alpha([[True, True], [True, True]]) is None
    assert equal_pairs([["a", "a", "b"], ["a", "a"]]) == pytest.approx(2 / 3)
