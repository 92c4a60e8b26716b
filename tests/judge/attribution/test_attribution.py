"""The blamed step, its probability, and abstention."""

import pytest
from judge.builders import RunBuilder

from mast_trace_judge.local.attribution import UNTRAINED, attribute
from mast_trace_judge.local.attribution.cascade import FAILS_FROM_HERE
from mast_trace_judge.local.rules import find_modes


def _judged(run: RunBuilder):
    trajectory = run.build()
    return attribute(trajectory, find_modes(trajectory))


def test_the_cause_of_the_first_failed_run_is_blamed():
    run = RunBuilder(outcome="failure", spans=False).asks().says("lead", "Coder, please.")
    run.says("coder", "```python\nprint(1 / 0)\n```")
    run.calls("terminal", "terminal", {}, error="ZeroDivisionError: division by zero")
    run.says("lead", "Hm.").says("coder", "It is 7.")
    found = _judged(run)
    assert (found.candidates[0].step, found.candidates[0].agent) == (2, "coder")
    assert found.candidates[0].rule == "the first failed tool run, or the act before it"


def test_the_first_step_with_the_final_answer_is_blamed_otherwise():
    run = RunBuilder("How many moons?", outcome="failure").asks().says("lead", "Reader, please.")
    run.says("reader", "The page lists 84 moons.").says("lead", "FINAL ANSWER: 84")
    found = _judged(run)
    assert (found.candidates[0].step, found.candidates[0].rule) == (
        2,
        "first mention of the value on which the run ends, or the act before it",
    )


def test_an_exact_finding_outweighs_the_structure():
    """The first of equal calls leads in a run that only repeats itself, and no verdict rests on that."""
    run = RunBuilder(outcome="failure").asks().says("lead", "Clerk, please.")
    for _ in range(3):
        run.calls("clerk", "list_bills", {"page": 1}, "bills 12.50 and 7.50")
    found = _judged(run.says("clerk", "Together 20.00.").says("lead", "FINAL ANSWER: 20.00"))
    assert (found.candidates[0].step, found.candidates[0].agent) == (2, "clerk")
    assert found.candidates[0].rule.startswith("1.3")
    assert found.decisive is None


def test_an_exact_wrong_statement_is_decisive_in_any_system():
    run = RunBuilder(outcome="failure").asks().calls("clerk", "count_rows", {}, "4711")
    found = _judged(run.says("clerk", "The tool returned 5120."))
    assert found.decisive is not None
    assert (found.decisive.step, found.calibrated) == (2, False)


def test_tools_that_fail_from_one_run_on():
    """The first failure of the tools is likeliest, unless a person goes on or most runs are fine.

    No verdict rests on that: it was counted on planted faults alone.
    """

    def judged(*outcomes, then=()):
        run = RunBuilder(outcome="failure").asks()
        for number, fine in enumerate(outcomes):
            how = {"result": "Fine."} if fine else {"error": "Timeout"}
            run.calls("clerk", "look_up", {"n": number}, **how)
        for text in then:
            run.asks(text)
        found = _judged(run.says("clerk", "I see."))
        assert found.decisive is None
        return next((each.step for each in found.candidates if each.rule == FAILS_FROM_HERE), None)

    assert judged(True, False, False, False) == 2
    assert judged(True, False) is None
    assert judged(False, True, True, True, False) is None
    assert judged(True, False, False, then=["Try another one."]) is None


def test_probabilities_add_up_and_agents_are_their_sums():
    """One distribution over steps carries everything else."""
    run = RunBuilder(outcome="failure").asks()
    for number in range(6):
        run.says(f"agent{number % 2}", f"Remark {number}.")
    found = _judged(run)
    assert sum(found.probabilities.values()) == pytest.approx(1)
    assert len(found.candidates) == 3
    assert 0 not in found.probabilities  # the user's step


def test_a_run_without_a_clue_is_left_undecided():
    """Without evidence for any of many steps, candidates are given and no verdict."""
    run = RunBuilder(outcome="failure").asks()
    for number in range(20):
        run.says(f"agent{number % 4}", "What do you think of it, everybody?")
    found = _judged(run)
    assert found.decisive is None
    assert found.candidates[0].probability < 0.5
    assert (found.profile, found.calibrated) == (UNTRAINED, False)


def test_a_success_has_no_decisive_error():
    found = _judged(RunBuilder(outcome="success").asks().says("a", "FINAL ANSWER: 84"))
    assert (found.candidates, found.decisive, found.probabilities) == ((), None, {})


@pytest.mark.parametrize("run", [RunBuilder(), RunBuilder().asks(), RunBuilder().asks().asks("?")])
def test_a_run_in_which_nobody_acts_has_no_candidate(run):
    found = _judged(run)
    assert found.candidates == ()
