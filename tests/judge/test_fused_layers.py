"""Verdicts where rules and a model have both looked at a run."""

import pytest
from judge.builders import RunBuilder

from mast_trace_judge.assembly import fuse_layers
from mast_trace_judge.llm.verification import ModelReading, Suggestion
from mast_trace_judge.local.attribution import Attribution, attribute, summarise
from mast_trace_judge.local.layers import LocalFindings, judge_by_rules
from mast_trace_judge.local.outcome import RunOutcome
from mast_trace_judge.look_first import places
from mast_trace_judge.verdict import Evidence, ModeFinding

RUN = RunBuilder(outcome="failure").asks().says("lead", "Go on.").says("coder", "Done.").build()
UNKNOWN = RunOutcome("unknown", 0.2)
FAILED = RunOutcome("failure", 0.97, "error")
SUCCEEDED = RunOutcome("success", 0.0, "recorded")
EXACT, HEURISTIC, MODEL = Evidence.EXACT, Evidence.HEURISTIC, Evidence.MODEL


def mode(code, probability, evidence):
    return ModeFinding(code=code, probability=probability, evidence=evidence, reason=evidence.value)


def fused(
    *steps, ruled=(), read=(), outcome=FAILED, suspect=False, model=("unknown", 0.5), ours=None
):
    """The findings of both layers; the model suggests these steps."""
    local = LocalFindings(tuple(ruled), ours or attribute(RUN), outcome, suspect)
    suggested = tuple(Suggestion(step, "", weight=1 / rank) for rank, step in enumerate(steps, 1))
    return fuse_layers(RUN, local, ModelReading(*model, suggested, modes=tuple(read)))


@pytest.mark.parametrize(
    ("ruled", "read", "found"),
    [
        # Findings that spans prove stand, whatever the model answers.
        ((("3.3", 0.8, EXACT),), (("3.3", 0.9, MODEL),), [("3.3", 0.8, EXACT)]),
        ((("3.3", 0.8, EXACT),), (), [("3.3", 0.8, EXACT)]),
        # A heuristic stands unless the model is surer; silence says nothing.
        ((("3.1", 0.4, HEURISTIC),), (("3.1", 0.6, MODEL),), [("3.1", 0.6, MODEL)]),
        ((("3.1", 0.4, HEURISTIC),), (("3.1", 0.3, MODEL),), [("3.1", 0.4, HEURISTIC)]),
        ((("3.1", 0.4, HEURISTIC),), (), [("3.1", 0.4, HEURISTIC)]),
        ((), (("2.2", 0.6, MODEL),), [("2.2", 0.6, MODEL)]),
        # The likeliest first, equal ones by code.
        (
            (("3.2", 0.5, EXACT), ("1.1", 0.9, EXACT)),
            (("2.2", 0.5, MODEL),),
            [("1.1", 0.9, EXACT), ("2.2", 0.5, MODEL), ("3.2", 0.5, EXACT)],
        ),
    ],
)
def test_one_finding_for_each_mode(ruled, read, found):
    modes = fused(ruled=[mode(*each) for each in ruled], read=[mode(*each) for each in read]).modes
    assert [(each.code, each.probability, each.evidence) for each in modes] == found
    assert [each.reason for each in modes] == [each.evidence.value for each in modes]


@pytest.mark.parametrize("outcome", [UNKNOWN, SUCCEEDED])
def test_a_models_finding_is_possible_where_nothing_says_that_the_run_failed(outcome):
    found = fused(
        ruled=[mode("3.1", 0.6, HEURISTIC)], read=[mode("2.2", 1.0, MODEL)], outcome=outcome
    )
    assert [(each.code, each.is_shown) for each in found.modes] == [("3.1", True), ("2.2", False)]


@pytest.mark.parametrize(
    ("outcome", "model", "steps", "found"),
    [
        (FAILED, ("success", 0.1), (), FAILED),
        (SUCCEEDED, ("failure", 0.9), (1,), SUCCEEDED),
        (UNKNOWN, ("failure", 0.9), (1,), RunOutcome("unknown", 0.9, "model")),
        (UNKNOWN, ("failure", 0.9), (), UNKNOWN),  # it quotes nothing
        (RunOutcome("unknown", 0.95), ("failure", 0.9), (1,), RunOutcome("unknown", 0.95)),
        (UNKNOWN, ("success", 0.0), (), UNKNOWN),
        (UNKNOWN, ("unknown", 0.9), (1,), UNKNOWN),
    ],
)
def test_a_model_makes_a_failure_likelier_and_decides_no_outcome(outcome, model, steps, found):
    assert fused(*steps, outcome=outcome, model=model).outcome == found


@pytest.mark.parametrize("steps", [(1, 2), (2, 1), (2,)])
def test_a_models_step_comes_before_those_that_only_a_profile_or_their_place_speaks_for(steps):
    """Also before equally likely ones; the numbers are those of the local layers."""
    for ours in (attribute(RUN), summarise(RUN, {1: 0.5, 2: 0.5}, {}, profile="")):
        found = fused(*steps, ours=ours).attribution
        assert [each.step for each in found.candidates] == [*steps, *({1, 2} - {*steps})]
        assert sorted(found.probabilities.values()) == sorted(ours.probabilities.values())
        assert (found.decisive, found.calibrated) == (None, False)
    rules = {each.step: each.rule for each in fused(2).attribution.candidates}
    assert "The model suggests it." in rules[2]
    assert "model" not in rules[1]


@pytest.mark.parametrize(("outcome", "first"), [("failure", 2), ("", 3)])
def test_a_rule_that_was_right_in_labelled_failures_comes_before_a_model(outcome, first):
    """As among the places to look at first, where it speaks of a failed run."""
    run = RunBuilder(outcome=outcome).asks().says("lead", "Go on.")
    run.calls("coder", "shop", {"id": 7}, error="TimeoutError: no answer")
    trajectory = run.says("coder", "It costs 12 EUR.").build()
    reading = ModelReading("failure", 0.9, (Suggestion(3, "a guess"),))
    found = fuse_layers(trajectory, judge_by_rules(trajectory), reading)
    assert found.attribution.candidates[0].step == first
    if outcome:
        assert places(trajectory, found, reading)[0].step == first


def test_a_step_that_the_record_asserts_stays():
    asserted = summarise(RUN, {1: 0.6, 2: 0.4}, {1: "shown"}, profile="cascade", shown={1})
    assert fused(2, ours=asserted).attribution == asserted


def test_the_rest_stays_as_the_local_layers_have_it():
    """Without acting agents there is no step to blame, whatever the model answers."""
    found = fused(2, ours=Attribution(), suspect=True)
    assert found.attribution == Attribution()
    assert found.suspect


def test_a_step_that_nobody_can_answer_for_gets_no_probability():
    """A model may suggest such a step, but no agent is to blame for it."""
    assert fused(0).attribution == attribute(RUN)
