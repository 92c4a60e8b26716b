"""Modes 3.2 and 3.3: checks that do not happen, and checks that pass what is wrong."""

import pytest
from judge.builders import RunBuilder

from mast_trace_judge.rules.verification import (
    idle_checker,
    passed_a_failure,
    skipped_check,
    unchecked_artefact,
    unsupported_answer,
)
from mast_trace_judge.verdict import Evidence

CODE = "Here it is:\n```python\ndef double(x):\n    y = x + x\n    return y\n```\n"


def test_code_that_nothing_runs_or_reviews_is_unchecked():
    """No tool and no reviewer after the last code."""
    run = RunBuilder(outcome="failure").says("coder", CODE).says("boss", "Thank you.")
    (found,) = unchecked_artefact(run.build())
    assert (found.code, found.evidence, found.steps) == ("3.2", Evidence.EXACT, (0,))


@pytest.mark.parametrize(
    "run",
    [
        RunBuilder().says("coder", CODE).calls("coder", "run_tests", {"all": True}, "3 passed"),
        RunBuilder().says("coder", CODE).says("reviewer", "Line 2 is fine."),
        RunBuilder(outcome="success").says("coder", CODE),
        RunBuilder().says("coder", "The function doubles its argument: `x + x`."),
    ],
    ids=["run", "reviewed", "successful", "no artefact"],
)
def test_checked_work_is_fine(run):
    """A run, a review, a success; a phrase of code is no artefact."""
    assert unchecked_artefact(run.build()) == []


def test_a_reviewer_that_never_acts_is_found():
    """The message went to the auditor too, and the run ended before it spoke."""
    run = RunBuilder(outcome="failure").says(
        "planner", "396 EUR, we are done.", to=("a", "auditor")
    )
    (found,) = idle_checker(run.build())
    assert (found.evidence, found.steps) == (Evidence.EXACT, (0,))
    assert idle_checker(run.says("auditor", "I agree.").build()) == []


def test_words_that_leave_the_check_out_are_heuristic():
    """Unless a tool runs afterwards after all."""
    run = RunBuilder().says("coder", "I skipped the tests to save time.")
    (found,) = skipped_check(run.build())
    assert found.evidence is Evidence.HEURISTIC
    assert skipped_check(run.calls("coder", "run_tests", {}, "3 passed").build()) == []


def test_a_figure_that_no_tool_returned_and_nobody_checked_is_heuristic():
    """The analyst added up in the head, the boss repeats it."""
    run = RunBuilder(outcome="failure").calls("analyst", "bills", {"p": 1}, "1240.00 and 860.50")
    run.says("analyst", "Together 2,130.50 EUR.").says("boss", "They owe 2,130.50 EUR.")
    (found,) = unsupported_answer(run.build())
    assert found.steps == (1, 2)


def test_a_figure_that_a_tool_confirms_is_fine():
    """A calculator returns it, or a reviewer speaks afterwards."""
    bills = [("analyst", "bills", {"p": 1}, "1240.00 and 860.50")]
    added = RunBuilder().calls(*bills[0]).says("analyst", "2,100.50 EUR.")
    added.calls("reviewer", "add", {"amounts": [1240, 860.5]}, "2100.5").says(
        "boss", "2,100.50 EUR."
    )
    reviewed = RunBuilder().calls(*bills[0]).says("analyst", "2,100.50 EUR.")
    reviewed.says("reviewer", "I get the same.").says("boss", "2,100.50 EUR.")
    assert unsupported_answer(added.build()) == []
    assert unsupported_answer(reviewed.build()) == []


def test_passing_what_the_last_run_failed_is_exact():
    """The tool span has an error, the reviewer approves."""
    run = RunBuilder().calls("reviewer", "run_tests", {}, error="2 tests failed")
    (found,) = passed_a_failure(run.says("reviewer", "All tests passed. Approved!").build())
    assert (found.code, found.evidence, found.steps) == ("3.3", Evidence.EXACT, (0, 1))


@pytest.mark.parametrize(
    "text",
    ["The tests do not pass, so this is not approved.", "Looks good, but test 2 must be fixed."],
)
def test_an_approval_with_reservations_is_none(text):
    """Negation and reservation in the same sentence."""
    run = RunBuilder().calls("reviewer", "run_tests", {}, error="2 tests failed")
    assert passed_a_failure(run.says("reviewer", text).build()) == []


def test_passing_after_a_run_that_worked_is_fine():
    """The failure was repaired before."""
    run = RunBuilder().calls("reviewer", "run_tests", {}, error="2 tests failed")
    run.calls("reviewer", "run_tests", {}, "5 passed").says("reviewer", "All tests passed.")
    assert passed_a_failure(run.build()) == []
