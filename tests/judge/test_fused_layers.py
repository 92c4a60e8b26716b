"""Verdicts where rules and a model have both looked at a run."""

from dataclasses import replace

import pytest
from judge.builders import RunBuilder

from mast_trace_judge.layer_fusion import fuse_layers, pool
from mast_trace_judge.llm.verification import Flip, ModelReading
from mast_trace_judge.local.attribution import Attribution, attribute
from mast_trace_judge.local.layers import LocalFindings, judge_by_rules
from mast_trace_judge.local.outcome import RunOutcome, suspicion
from mast_trace_judge.local.rules import find_modes
from mast_trace_judge.verdict import Evidence, ModeFinding

RUN = RunBuilder(outcome="failure").asks().says("lead", "Go on.").says("coder", "Done.").build()
UNKNOWN = RunOutcome("unknown", 0.2)
EXACT, HEURISTIC, MODEL = Evidence.EXACT, Evidence.HEURISTIC, Evidence.MODEL


def mode(code, probability, evidence):
    return ModeFinding(code=code, probability=probability, evidence=evidence, reason=evidence.value)


def fused(*, ruled=(), read=(), outcome=UNKNOWN, suspect=False, model=("unknown", 0.5), **more):
    """The findings of both layers; the model has quoted what is wrong at step 2, if nothing else."""
    local = LocalFindings(tuple(ruled), attribute(RUN), outcome, suspect)
    more = {"grounded": frozenset({2}), **more}
    return fuse_layers(RUN, local, ModelReading(*model, "", modes=tuple(read), **more))


@pytest.mark.parametrize(
    ("ruled", "read", "found"),
    [
        # Findings that spans prove stand, whatever the model answers.
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
        # Nothing that could be quoted proves a success: 0.8 x 0.1 + 0.2 x 0.52.
        (UNKNOWN, False, ("success", 0.1), RunOutcome("unknown", 0.184, "model")),
        (UNKNOWN, False, ("success", 0.0), RunOutcome("unknown", 0.104, "model")),
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


@pytest.mark.parametrize("read", [(), (mode("2.2", 0.5, MODEL),)])
def test_a_failure_is_taken_from_a_model_that_quotes_it(read):
    """A failure mode with a true quote is evidence as well as a point; without any it is an opinion."""
    found = fused(read=read, model=("failure", 0.9), grounded=frozenset()).outcome
    assert found == (RunOutcome("failure", 0.9, "model") if read else UNKNOWN)


def test_text_that_speaks_to_the_judge_takes_the_weight_from_a_models_word():
    """Neither the model's pass nor its silence counts in such a run."""
    ruled = [mode("3.1", 0.4, HEURISTIC)]
    found = fused(ruled=ruled, model=("success", 0.0), addressed=True)
    assert found.outcome == RunOutcome("unknown", suspicion(ruled))
    assert found.modes == tuple(ruled)


def test_silence_of_a_model_that_shows_nothing_takes_nothing_away():
    """The model may not have read the run, or may have been instructed not to."""
    ruled = [mode("3.1", 0.4, HEURISTIC)]
    assert fused(ruled=ruled, grounded=frozenset()).modes == tuple(ruled)
    assert fused(ruled=ruled).modes[0].probability == 0.2


def test_rules_that_explain_failures_are_applied_to_those_that_a_model_shows():
    """A run without a recorded failure has no findings of these rules before."""
    run = RunBuilder("Write a function, test it, and report the result.").asks()
    for _ in range(3):
        run.calls("coder", "run_tests", {"path": "tests"}, error="AssertionError: 3 != 4")
    run.says("coder", "Everything works as it should.", to="user")
    run = run.build()
    local = judge_by_rules(run)
    failed = find_modes(replace(run, outcome="failure"))
    more = {found.code for found in failed} - {found.code for found in local.modes}
    assert more
    reading = ModelReading("failure", 0.9, "", grounded=frozenset({4}), addressed=True)
    assert more <= {found.code for found in fuse_layers(run, local, reading).modes}
    opinion = ModelReading("failure", 0.9, "")
    assert not more & {found.code for found in fuse_layers(run, local, opinion).modes}


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
    flips, quoted = {4: Flip(0.9, "", "")}, frozenset({4})
    found = fuse_layers(long, local, ModelReading("failure", 0.9, "", flips, grounded=quoted))
    assert (found.attribution.candidates[0].step, found.attribution.rule) == (4, SAID)
    assert found.attribution.decisive.step == 4


def test_a_flip_without_a_quote_names_no_step():
    """The flip moves the probabilities by half, and a step is decisive only as it would be without."""
    bare = fused(flips={2: Flip(0.9, "", "")}, grounded=frozenset()).attribution
    quoted = fused(flips={2: Flip(0.9, "", "")}).attribution
    assert quoted.decisive.step == 2
    assert bare.decisive is None
    assert bare.probabilities[2] < quoted.probabilities[2]


def test_a_quote_without_a_flip_names_no_step():
    found = fused(flips={2: Flip(0.1, "", "")}, grounded=frozenset({1})).attribution
    assert found.probabilities[1] >= 0.5
    assert found.decisive is None


def test_the_rest_stays_as_the_local_layers_have_it():
    """Without acting agents there is no step to blame, whatever the model answers."""
    local = LocalFindings((), Attribution(), UNKNOWN, suspect=True)
    found = fuse_layers(RUN, local, ModelReading("failure", 0.9, "", flips={2: Flip(0.9, "", "")}))
    assert found.attribution == Attribution()
    assert found.suspect


def test_a_step_that_nobody_can_answer_for_gets_no_probability():
    """A model may try such a step, but no agent is to blame for it."""
    assert pool({1: 0.25, 2: 0.75}, {0: 0.9}) == pytest.approx({1: 0.25, 2: 0.75})
    assert pool({1: 0.25, 2: 0.75}, {}) == pytest.approx({1: 0.25, 2: 0.75})
    assert pool({}, {3: 0.9}) == {}
