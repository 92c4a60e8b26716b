"""The end of a run, as far as anything says, and its likely failure where nothing does."""

from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mast_trace.trajectory import Trajectory
from mast_trace_judge.local.outcome import RunOutcome, outcome_of, strongly_suspect, suspicion
from mast_trace_judge.verdict import Evidence, ModeFinding

EXACT, HEURISTIC, MODEL = Evidence.EXACT, Evidence.HEURISTIC, Evidence.MODEL


def mode(code, probability, evidence=EXACT):
    return ModeFinding(code=code, probability=probability, evidence=evidence)


MODES = st.lists(st.builds(mode, st.just("1.3"), st.floats(0, 1), st.sampled_from(Evidence)))


@given(MODES)
def test_suspicion(modes):
    """One run in five fails; each mode is an independent reason, worth what its evidence is."""
    worth = {EXACT: 0.8, MODEL: 0.8, HEURISTIC: 0.35}
    fine = 0.8 * prod(1 - worth[each.evidence] * each.probability for each in modes)
    assert suspicion(modes) == pytest.approx(1 - fine, abs=5.1e-5)
    assert suspicion(modes) == round(suspicion(modes), 4)


@given(MODES, st.floats(0, 1))
def test_another_mode_makes_no_run_less_suspect(modes, probability):
    assert suspicion([*modes, mode("2.1", probability, HEURISTIC)]) >= suspicion(modes)


PROVEN = mode("3.3", 0.9)
SUSPECT = RunOutcome("unknown", 0.776)


@pytest.mark.parametrize(
    ("run", "modes", "found"),
    [
        # The recorded outcome counts first.
        ({"outcome": "success", "error": "x"}, [PROVEN], RunOutcome("success", 0.0, "recorded")),
        ({"outcome": "failure"}, [], RunOutcome("failure", 1.0, "recorded")),
        # Then how it ended.
        ({"error": ""}, [], RunOutcome("failure", 0.97, "error")),
        ({"error": "x", "termination_reason": "budget"}, [], RunOutcome("failure", 0.97, "error")),
        *(
            ({"termination_reason": reason}, [PROVEN], RunOutcome("failure", 0.95, "termination"))
            for reason in ("error", "recursion_limit", "budget")
        ),
        # A person who stops a run says nothing of it, nor does what breaks then.
        *(
            ({"termination_reason": reason, "error": "x"}, [PROVEN], SUSPECT)
            for reason in ("interrupted", "cancelled", "user_ended")
        ),
        # Then what spans prove of its result.
        ({}, [PROVEN], RunOutcome("failure", 0.9, "rules")),
        ({}, [mode("3.1", 0.7), PROVEN, mode("3.3", 0.8)], RunOutcome("failure", 0.9, "rules")),
        ({}, [mode("3.1", 0.7)], RunOutcome("failure", 0.7, "rules")),
        ({}, [mode("3.1", 0.69)], RunOutcome("unknown", 0.6416)),
        ({}, [mode("3.3", 0.9, MODEL)], SUSPECT),
        ({}, [mode("1.3", 0.9)], SUSPECT),
        ({"termination_reason": "max_turns"}, [], RunOutcome("unknown", 0.2)),
        ({}, [], RunOutcome("unknown", 0.2)),
    ],
)
def test_how_a_run_ended(run, modes, found):
    assert outcome_of(Trajectory(trace_id="1", steps=(), **run), modes) == found


def test_whether_anything_says_how_it_ended():
    """An outcome, not its probability."""
    assert RunOutcome("failure", 0.9).known
    assert RunOutcome("success", 0.1).known
    assert not RunOutcome("unknown", 0.99).known


@pytest.mark.parametrize(
    ("modes", "suspect"),
    [
        ([], False),
        ([mode("2.6", 0.69), mode("2.6", 0.7)], True),
        ([mode("2.6", 0.69)], False),
        ([mode("2.6", 0.9, HEURISTIC), mode("2.6", 0.9, MODEL)], False),
        ([mode("1.3", 0.97), mode("1.4", 0.9), mode("2.1", 0.9), mode("2.5", 0.9)], False),
    ],
)
def test_whether_a_decisive_step_is_sought_in_any_case(modes, suspect):
    """Spans prove a mode that makes the result wrong; agents recover from repetition."""
    assert strongly_suspect(modes) is suspect
