"""Mode 3.2, where an agent claims a check that did not happen."""

import pytest
from judge.builders import RunBuilder

from mast_trace.content import content_hash
from mast_trace_judge.local.rules.claimed_checks import claimed_check, silent_checker

RAN = "I ran the full test suite, and it is fine."


@pytest.mark.parametrize(
    "text",
    [
        RAN,
        "We executed all unit tests.",
        "Re-ran the suite against the patched code.",
        "Result:\ncollected 7 items\n7 passed in 0.01s",
        "Ran 12 tests in 0.004s",
        "All 4 tests pass.",
        "All tests passed. Ready to go.",
    ],
)
def test_tests_that_nobody_ran(text):
    run = RunBuilder(spans=False).says("coder", "def f(): ...").says("tester", text)
    (found,) = claimed_check(run.build())
    assert (found.code, found.steps) == ("3.2", (1,))
    assert found.probability >= 0.5
    assert found.quotes[0] in text


@pytest.mark.parametrize(
    "text",
    [
        "I traced all tests by hand: all tests pass.",
        "Once all tests pass, we are done.",
        "Please make sure that all tests pass.",
        "All tests should pass now.",
        "If I ran the tests they would pass.",
        "I have not run the tests.",
        'print("All tests passed.")',
        "Did you say that all tests pass?",
        "I walked through the tests line by line.",
    ],
)
def test_plans_and_thoughts_are_no_claims(text):
    run = RunBuilder(spans=False).says("coder", "def f(): ...").says("tester", text)
    assert claimed_check(run.build()) == []


@pytest.mark.parametrize(
    "run",
    [
        RunBuilder().calls("tester", "run_tests", {}, "7 passed").says("tester", RAN),
        RunBuilder(spans=False).says("Code_Executor", "7 passed in 0.1s").says("tester", RAN),
        RunBuilder(spans=False).says("Computer_terminal", "exitcode: 0").says("tester", RAN),
    ],
)
def test_where_something_runs_tests_may_have_run(run):
    """A tool, or an agent that executes the code of others, may have run the tests."""
    assert claimed_check(run.build()) == []


def test_a_recorded_run_without_any_tool_may_hide_them():
    """The program may run tests outside the recording, so the finding is below 0.5 and not shown."""
    (found,) = claimed_check(RunBuilder().says("tester", RAN).build())
    assert found.probability < 0.5


@pytest.mark.parametrize(
    ("tool", "arguments", "result", "found"),
    [
        ("read_file", {"path": "a.py"}, "x = 1", True),
        ("write_file", {"path": "a.py"}, "saved", True),
        ("search_files", {"query": "sum"}, "a.py: 3 matches", True),
        ("run_tests", {}, "fine", False),
        ("get_test_report", {}, "fine", False),
        ("read_log", {"of": "build"}, "fine", False),
        ("read_file", {"path": "results.txt"}, "7 passed", False),
        ("write_file", {"path": "test.sh", "text": "pytest"}, "saved", False),
        ("assistant", {"task": "see to it"}, "done", False),
    ],
)
def test_tools_that_cannot_have_run_tests(tool, arguments, result, found):
    """A tool cannot have run tests if its name says otherwise and no argument or result has tests."""
    run = RunBuilder().calls("tester", tool, arguments, result).says("tester", RAN)
    claims = claimed_check(run.build())
    assert [each.probability >= 0.5 for each in claims] == ([True] if found else [])


@pytest.mark.parametrize("text", ["12 passed, 0 failed", "All is green."])
def test_results_that_a_person_brings(text):
    """A person who runs the program may give the agents the results of the tests."""
    run = RunBuilder().calls("tester", "read_file", {"path": "a.py"}, "x = 1").asks(text)
    assert claimed_check(run.says("tester", RAN).build()) == []


def silent(turns, **more):
    run = RunBuilder(spans=False).says("coder", "def f(): ...")
    for _ in range(turns):
        run.says("Tester", "", **more)
    return run


@pytest.mark.parametrize(
    ("run", "steps"),
    [
        (silent(3), [(1, 2, 3)]),
        (silent(3, content_hash=content_hash("")), [(1, 2, 3)]),
        (silent(2), []),
        (silent(3, content_hash="0123"), []),
        (silent(3).says("Tester", "Fine."), []),
        (silent(3).calls("Tester", "look", {}), []),
    ],
    ids=["three", "kept", "two", "texts not kept", "speaks", "a tool"],
)
def test_a_checker_that_never_says_a_word(run, steps):
    """A checker with three empty turns and no tool is found, unless it speaks or texts are not kept."""
    assert [found.steps for found in silent_checker(run.build())] == steps


def claiming(times):
    run = RunBuilder(spans=False)
    for _ in range(times):
        run.says("tester", RAN)
    return run.build()


@pytest.mark.parametrize(
    ("run", "probability"),
    [(claiming(1), 0.6), (claiming(2), 0.65), (claiming(5), 0.8), (claiming(6), 0.8)],
)
def test_more_claims_are_worth_more(run, probability):
    (found,) = claimed_check(run)
    assert (found.probability, len(found.steps)) == (pytest.approx(probability), len(run.steps))
