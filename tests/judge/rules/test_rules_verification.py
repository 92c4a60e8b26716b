"""Modes 3.2 and 3.3: checks that do not happen, and checks that pass what is wrong."""

from dataclasses import replace

import pytest
from judge.builders import RunBuilder

from mast_trace_judge.local.rules.verification import (
    idle_checker,
    passed_a_failure,
    skipped_check,
    unchecked_artefact,
    unsupported_answer,
)
from mast_trace_judge.verdict import Evidence

CODE = "Here it is:\n```python\ndef double(x):\n    y = x + x\n    return y\n```\n"


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
    """A run, a review or a success clears the artefact; one line of code is no artefact."""
    assert unchecked_artefact(run.build()) == []


def test_a_reviewer_that_never_acts_is_found():
    run = RunBuilder(outcome="failure").says(
        "planner", "396 EUR, we are done.", to=("a", "auditor")
    )
    (found,) = idle_checker(run.build())
    assert (found.evidence, found.steps) == (Evidence.HEURISTIC, (0,))
    assert idle_checker(run.says("auditor", "I agree.").build()) == []


def test_a_figure_that_a_tool_confirms_is_fine():
    """The figure is supported if a calculator returns it or a reviewer speaks afterwards."""
    bills = [("analyst", "bills", {"p": 1}, "1240.00 and 860.50")]
    added = RunBuilder().calls(*bills[0]).says("analyst", "2,100.50 EUR.")
    added.calls("reviewer", "add", {"amounts": [1240, 860.5]}, "2100.5").says(
        "boss", "2,100.50 EUR."
    )
    reviewed = RunBuilder().calls(*bills[0]).says("analyst", "2,100.50 EUR.")
    reviewed.says("reviewer", "I get the same.").says("boss", "2,100.50 EUR.")
    assert unsupported_answer(added.build()) == []
    assert unsupported_answer(reviewed.build()) == []


def test_passing_after_a_run_that_worked_is_fine():
    run = RunBuilder().calls("reviewer", "run_tests", {}, error="2 tests failed")
    run.calls("reviewer", "run_tests", {}, "5 passed").says("reviewer", "All tests passed.")
    assert passed_a_failure(run.build()) == []


@pytest.mark.parametrize(
    ("rule", "run"),
    [
        (unchecked_artefact, lambda run: run.says("tester", "Go.").says("coder", CODE)),
        (idle_checker, lambda run: run.says("boss", "We are done.", to=("a", "auditor"))),
    ],
)
@pytest.mark.parametrize("outcome", ["success", "failure", ""])
@pytest.mark.parametrize("spans", [True, False])
def test_a_missing_check_is_possible_where_the_run_did_not_succeed(rule, run, outcome, spans):
    """A checker may have another name, and its acts may not be recorded."""
    found = rule(run(RunBuilder(outcome=outcome, spans=spans)).build())
    wanted = [] if outcome == "success" else [(Evidence.HEURISTIC, False)]
    assert [(each.evidence, each.is_shown) for each in found] == wanted


def test_a_check_before_the_last_artefact_is_none():
    """A run of tests before the last artefact has checked something else, so it is no check of it."""
    run = RunBuilder().calls("coder", "run_tests", {}, "3 passed").says("coder", CODE)
    assert unchecked_artefact(run.build())[0].steps == (1,)


SKIPPED = "It is written. I skipped the tests to save time. Bye."


@pytest.mark.parametrize(
    ("run", "steps"),
    [
        (RunBuilder(), ()),
        (RunBuilder(outcome="success").says("coder", SKIPPED), ()),
        (RunBuilder().says("coder", SKIPPED).says("boss", "Fine."), (0,)),
        (RunBuilder().says("coder", SKIPPED).calls("coder", "save_file", {}, "saved"), (0,)),
        (RunBuilder().says("coder", SKIPPED).says("reviewer", "Fine."), (0,)),
        (RunBuilder().says("coder", SKIPPED).calls("coder", "run_tests", {}, "3 passed"), ()),
        (RunBuilder().calls("coder", "save_file", {}, "saved without tests"), ()),
    ],
    ids=[
        *("empty", "success", "a remark", "a tool that writes", "a reviewer"),
        *("tests", "a tool says so"),
    ],
)
def test_a_check_is_left_out_until_a_tool_runs(run, steps):
    """A tool that only writes checks nothing; the sentence is quoted."""
    found = skipped_check(run.build())
    assert [each.steps for each in found] == ([steps] if steps else [])
    assert all(each.quotes == ("I skipped the tests to save time.",) for each in found)


@pytest.mark.parametrize("outcome", ["success", "failure", ""])
@pytest.mark.parametrize(("figure", "own"), [("340", True), ("34", False)])
def test_a_figure_of_three_digits_is_worth_more_in_a_failed_run(outcome, figure, own):
    """An unsupported figure does not count in a successful run; the finding quotes its sentence."""
    run = RunBuilder(outcome=outcome).calls("clerk", "bills", {"p": 1}, "12 bills")
    run.says("boss", "Go on.").says("clerk", f"I get {figure}.")
    found = unsupported_answer(run.says("boss", f"Hello. It is {figure}. Bye.").build())
    worth = {"failure": 0.6, "": 0.4}.get(outcome) if own else None
    assert [each.probability for each in found] == ([worth] if worth else [])
    assert all((each.steps, each.quotes) == ((2, 3), ("It is 340.",)) for each in found)


def _saved(*said: tuple[str, str]) -> RunBuilder:
    """A call that writes, and what agents say after it."""
    run = RunBuilder().calls("a", "save", {}, "saved")
    for agent, text in said:
        run.says(agent, text)
    return run


@pytest.mark.parametrize(
    ("run", "steps"),
    [
        (RunBuilder().says("a", "It is 340.").calls("a", "save", {}, "saved"), (0,)),
        (_saved(("reviewer", "It is 340."), ("a", "340.")), (1, 2)),
        (_saved(("a", "It is 340."), ("reviewer", "Fine."), ("a", "It is 340 and 512.")), (3,)),
        (_saved(("a", "It is 340."), ("reviewer", "Fine."), ("a", "It is 340.")), ()),
    ],
    ids=["nobody checks", "the reviewer's own", "another one", "checked"],
)
def test_a_figure_is_checked_after_it_came_up(run, steps):
    """Another agent's message or a tool that does more than write checks a figure; each is examined."""
    found = unsupported_answer(run.build())
    assert [each.steps for each in found] == ([steps] if steps else [])


@pytest.mark.parametrize(
    ("agent", "spans", "error", "worth"),
    [
        ("coder", True, "Timeout", 0.6),
        ("boss", True, "Timeout", None),
        ("reviewer", True, "Timeout", 0.85),
        ("reviewer", False, "Timeout", 0.6),
        ("reviewer", True, None, 0.6),
    ],
)
def test_who_may_pass_what_failed(agent, spans, error, worth):
    """The approval of the running agent or a checker counts; exact for a checker after a failed span."""
    run = RunBuilder(spans=spans, outcome="failure").says("boss", "Go on.")
    run.calls("coder", "run_tests", {}, "exitcode: 1 (execution failed)", error=error)
    built = run.says(agent, "Approved.").build()
    found = passed_a_failure(built)
    assert [each.probability for each in found] == ([worth] if worth else [])
    unknown = passed_a_failure(replace(built, outcome=""))
    assert [each.probability for each in unknown] == ([worth] if worth == 0.85 else [])
    evidence = Evidence.EXACT if worth == 0.85 else Evidence.HEURISTIC
    assert all("run_tests" in each.reason and each.evidence is evidence for each in found)


@pytest.mark.parametrize(
    ("text", "passes"),
    [
        ("But wait, there was an issue. All tests passed.", True),
        ("Approved, it should be fine now.", True),
        ("The tests do not pass, so this is not approved.", False),
        ("Approved: it refuses such input, as intended.", False),
        ("Looks good, but test 2 must be fixed.", False),
        ("Approved".ljust(297) + "but", False),
        ("Approved".ljust(298) + "but", True),
    ],
    ids=[
        *("in another sentence", "hoped", "denied", "sought"),
        *("reserved", "within 300 characters", "behind them"),
    ],
)
def test_a_reservation_counts_in_the_same_sentence(text, passes):
    """The sentence is read up to 300 characters."""
    run = RunBuilder().calls("coder", "run_tests", {}, error="2 tests failed")
    found = passed_a_failure(run.says("reviewer", text).build())
    assert [each.steps for each in found] == ([(0, 1)] if passes else [])


@pytest.mark.parametrize(
    ("agent", "text"), [("reviewer", "Approved, but fix line 2."), ("boss", "Approved.")]
)
def test_an_approval_that_counts_may_come_later(agent, text):
    """An approval counts after one with a reservation or one of an agent that is no checker."""
    run = RunBuilder().calls("coder", "run_tests", {}, error="2 tests failed").says(agent, text)
    (found,) = passed_a_failure(run.says("reviewer", "Approved.").build())
    assert found.steps == (0, 2)
