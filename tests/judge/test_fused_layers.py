"""Verdicts where rules and a model have both looked at a run."""

import pytest
from judge.builders import RunBuilder

from mast_trace_judge.layer_fusion import fuse_layers, pool
from mast_trace_judge.llm.verification import Flip, ModelReading
from mast_trace_judge.local.attribution import Attribution, attribute
from mast_trace_judge.local.layers import LocalFindings
from mast_trace_judge.local.outcome import RunOutcome, suspicion
from mast_trace_judge.verdict import Evidence, ModeFinding

RUN = RunBuilder(outcome="failure").asks().says("lead", "Go on.").says("coder", "Done.").build()
UNKNOWN = RunOutcome("unknown", 0.2)
EXACT, HEURISTIC, MODEL = Evidence.EXACT, Evidence.HEURISTIC, Evidence.MODEL


def mode(code, probability, evidence):
    return ModeFinding(code=code, probability=probability, evidence=evidence, reason=evidence.value)


def fused(*, ruled=(), read=(), outcome=UNKNOWN, suspect=False, model=("unknown", 0.5), flips=None):
    """The findings of both layers."""
    local = LocalFindings(tuple(ruled), attribute(RUN), outcome, suspect)
    reading = ModelReading(*model, "", modes=tuple(read), flips=flips or {})
    return fuse_layers(RUN, local, reading)


@pytest.mark.parametrize(
    ("ruled", "read", "found"),
    [
        # What spans prove stands, whatever the model makes of it.
        ((("3.3", 0.8, EXACT),), (("3.3", 0.3, MODEL),), [("3.3", 0.8, EXACT)]),
        ((("3.3", 0.8, EXACT),), (), [("3.3", 0.8, EXACT)]),
        # A heuristic raises what the model says: 1 - (1 - 0.6) (1 - 0.4 / 2).
        ((("3.1", 0.4, HEURISTIC),), (("3.1", 0.6, MODEL),), [("3.1", 0.68, MODEL)]),
        # Alone it is halved, but for two modes on which rules are the better judges.
        ((("3.1", 0.4, HEURISTIC),), (), [("3.1", 0.2, HEURISTIC)]),
        ((("1.3", 0.4, HEURISTIC),), (), [("1.3", 0.4, HEURISTIC)]),
        ((("2.1", 0.4, HEURISTIC),), (), [("2.1", 0.4, HEURISTIC)]),
        ((), (("2.2", 0.6, MODEL),), [("2.2", 0.6, MODEL)]),
        # The likeliest first, equal ones by code.
        (
            (("3.2", 0.5, EXACT), ("1.1", 0.9, EXACT)),
            (("2.2", 0.5, MODEL),),
            [("1.1", 0.9, EXACT), ("2.2", 0.5, MODEL), ("3.2", 0.5, EXACT)],
        ),
        # Four decimals are displayed.
        ((("3.1", 0.12345, HEURISTIC),), (), [("3.1", 0.0617, HEURISTIC)]),
        ((("3.1", 0.12345, HEURISTIC),), (("3.1", 0.6, MODEL),), [("3.1", 0.6247, MODEL)]),
    ],
)
def test_one_finding_for_each_mode(ruled, read, found):
    """With the probability, and the evidence and reason of the layer that it is taken from."""
    modes = fused(ruled=[mode(*each) for each in ruled], read=[mode(*each) for each in read]).modes
    assert [(each.code, each.probability, each.evidence) for each in modes] == found
    assert [each.reason for each in modes] == [each.evidence.value for each in modes]


FAILED = RunOutcome("failure", 0.97, "error")
SUCCEEDED = RunOutcome("success", 0.0, "recorded")


@pytest.mark.parametrize(
    ("outcome", "suspect", "model", "found"),
    [
        (FAILED, False, ("success", 0.1), FAILED),
        (SUCCEEDED, False, ("failure", 0.9), SUCCEEDED),
        (UNKNOWN, False, ("failure", 0.9), RunOutcome("failure", 0.9, "model")),
        (UNKNOWN, True, ("failure", 0.9), RunOutcome("failure", 0.9, "model")),
        (UNKNOWN, False, ("success", 0.1), RunOutcome("success", 0.1, "model")),
        # A text in the run may have won the model over.
        (UNKNOWN, True, ("success", 0.1), RunOutcome("unknown", 0.52)),
        (UNKNOWN, False, ("unknown", 0.5), RunOutcome("unknown", 0.52)),
    ],
)
def test_how_the_run_ended(outcome, suspect, model, found):
    """The run itself counts first, then the model; else how suspicious the merged modes are."""
    merged = [mode("2.2", 0.5, MODEL)]
    assert suspicion(merged) == 0.52
    assert fused(read=merged, outcome=outcome, suspect=suspect, model=model).outcome == found


SAID = "By the model's reading its correction would have saved the run."


@pytest.mark.parametrize(
    ("flips", "rules"),
    [
        ({}, {1: "first actor", 2: ""}),
        ({2: 0.5}, {1: "first actor", 2: SAID}),
        ({2: 0.49}, {1: "first actor", 2: ""}),
        ({1: 0.9, 2: 0.1}, {1: f"first actor {SAID}", 2: ""}),
    ],
)
def test_what_speaks_for_a_step(flips, rules):
    """The opinion of the local layers, and the model's if its correction was likely to help."""
    found = fused(flips={step: Flip(weight, "", "") for step, weight in flips.items()})
    assert {each.step: each.rule for each in found.attribution.candidates} == rules


def test_a_step_that_local_layers_did_not_name_has_the_models_word_alone():
    """The fourth of six steps is no candidate before the model tries it."""
    run = RunBuilder(outcome="failure").asks()
    for number in range(6):
        run.says(f"agent{number}", "What does everybody think of it?")
    long = run.build()
    local = LocalFindings((), attribute(long), UNKNOWN, suspect=False)
    assert 4 not in {candidate.step for candidate in local.attribution.candidates}
    found = fuse_layers(long, local, ModelReading("failure", 0.9, "", {4: Flip(0.9, "", "")}))
    assert (found.attribution.candidates[0].step, found.attribution.rule) == (4, SAID)


def test_the_rest_stays_as_the_local_layers_have_it():
    """Where nobody acted there is nothing to blame, whatever the model says."""
    local = LocalFindings((), Attribution(), UNKNOWN, suspect=True)
    found = fuse_layers(RUN, local, ModelReading("failure", 0.9, "", flips={2: Flip(0.9, "", "")}))
    assert found.attribution == Attribution()
    assert found.suspect


def test_a_step_that_nobody_can_answer_for_gets_no_probability():
    """A model may try such a step, but no agent is to blame for it."""
    assert pool({1: 0.25, 2: 0.75}, {0: 0.9}) == pytest.approx({1: 0.25, 2: 0.75})
