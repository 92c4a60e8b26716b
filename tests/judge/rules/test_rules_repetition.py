"""Mode 1.3: what counts as the same step done again."""

from dataclasses import replace

import pytest
from judge.builders import RunBuilder

from mast_trace.trajectory import StepKind
from mast_trace_judge.local.rules.repetition import repeated_calls, repeated_messages
from mast_trace_judge.verdict import Evidence

BILLS = '{"bills": [12.5, 7.5]}'
LONG = "The quarterly report covers three regions, and revenue grew in each of them by a little. "


PAGE = ("clerk", "list_bills", {"page": 1}, BILLS)
RATE = ("clerk", "get_rate", {}, "1.07")
EDITED = ("coder", "edit_file", {"path": "sum.py"}, "edited sum.py, 2 lines changed")
FAILED = ("coder", "run_tests", {"path": "tests"}, "1 test failed: test_sum")
PASSED = ("coder", "run_tests", {"path": "tests"}, "3 tests passed")


def called(*calls, begin=None, error=None, **attributes):
    """A run of these calls, each an agent, a tool, arguments and a result, after a message."""
    run = RunBuilder(**attributes)
    if begin:
        run.says(*begin)
    for call in calls:
        run.calls(*call, error=error)
    return run


def test_the_order_of_arguments_does_not_matter():
    run = RunBuilder(outcome="failure").calls("clerk", "find_bill", {"a": 1, "b": 2}, BILLS)
    run.calls("clerk", "find_bill", {"b": 2, "a": 1}, BILLS)
    assert repeated_calls(run.build())


def test_a_call_that_comes_twice_is_a_fact_and_no_failure():
    """Nobody says that the run failed, and looking once more is sound."""
    assert repeated_calls(called(PAGE, PAGE).build()) == []


def test_failing_calls_that_are_tried_again_are_a_fact():
    """An agent that retries may be instructed to, any number of times."""
    run = called(*[PAGE[:3]] * 6, error="HTTP 429: too many requests")
    assert repeated_calls(run.build()) == []


@pytest.mark.parametrize(
    "answers",
    [["open"] * 4 + ["closed"], ["[]"] * 4, ['{"state": "pending"}'] * 4, ["No new messages."] * 4],
    ids=["another answer in the end", "nothing there yet", "pending", "an inbox"],
)
def test_polling_is_no_repetition(answers):
    """By whichever name: the answer is waited for."""
    run = called(*(("clerk", "order_state", {"id": 7}, answer) for answer in answers))
    assert repeated_calls(run.build()) == []


def test_agents_of_one_name_do_not_know_of_each_other():
    run = RunBuilder()
    for number in range(4):
        run.calls("worker", "list_rates", {"day": 1}, BILLS)
        run._steps[-1] = replace(run._steps[-1], start=number, end=100)
    assert repeated_calls(run.build()) == []


@pytest.mark.parametrize(
    "run",
    [
        called(PAGE, ("clerk", "list_bills", {"page": 2}, BILLS)),
        called(PAGE, ("clerk", "list_bills", {"page": 1}, '{"bills": []}')),
        called(PAGE, ("auditor", "list_bills", {"page": 1}, BILLS)),
        called(FAILED, EDITED, FAILED),
        called(PASSED, EDITED, PASSED),
        called(PAGE).asks("And now?").calls(*PAGE),
        called(*[("clerk", "job_status", {"id": 7}, "the job is still running")] * 2),
        called(*[("surfer", "press_key", {"key": "down"}, "ok")] * 2),
        called(*[("gardener", "water", {"bed": 4}, "watered 3 plants")] * 4),
        called(*[("driver", "send_heartbeat", {"session": 7}, "alive")] * 4),
        called(*[("guest", "cast", {"of": "lots"}, side) for side in ("red", *["white"] * 3)]),
        called(*[PAGE[:3]] * 2, error="TimeoutError: no answer"),
        RunBuilder().hands_over("boss", "clerk").hands_over("boss", "clerk"),
        called(*[(*PAGE[:3], "")] * 2, spans=False),
    ],
    ids=[
        *("other arguments", "another result", "another agent checks", "tests again after an edit"),
        *("good tests again after an edit", "the user asked again", "waiting"),
        *("an acknowledgement says nothing", "an act that is done", "kept alive", "left to chance"),
        *("one retry of a failure", "hand-offs"),
        "content not captured",
    ],
)
def test_benign_calls_are_no_repetition(run):
    """Anything that may have changed the answer, or says nothing, is not counted."""
    assert repeated_calls(run.build()) == []


def test_almost_the_same_message_is_heuristic_repetition():
    run = RunBuilder().says("writer", LONG * 3).says("boss", "Go on.")
    run.says("writer", "Now: " + LONG * 3)
    (found,) = repeated_messages(run.build())
    assert (found.code, found.evidence, found.steps) == ("1.3", Evidence.HEURISTIC, (0, 2))
    assert [quote[:7] for quote in found.quotes] == ["The qua", "Now: Th"]


def test_an_identical_message_is_found_however_far_back():
    """Exact copies are found beyond the window of near copies."""
    run = RunBuilder().says("boss", "Go on.").says("writer", LONG * 2)
    for number in range(40):
        run.says(
            "writer",
            f"Chapter {number} deals with region {number * 37} in detail. " * 4 + "z" * number,
        )
    for _ in range(3):
        run.says("writer", LONG * 2)
    assert any({1, 42} <= set(found.steps) for found in repeated_messages(run.build()))


def test_one_repetition_among_many_messages_is_left_out():
    """People do not call that a failure."""
    run = RunBuilder().says("boss", "Go on.")
    run.says("writer", LONG * 2).says("writer", LONG * 2)
    for number in range(8):
        run.says(
            "writer", f"Chapter {number} deals with region {number * 37}. " + "yz" * number * 9
        )
    assert repeated_messages(run.build()) == []


@pytest.mark.parametrize(
    "run",
    [
        RunBuilder().says("a", "Continue.").says("a", "Continue."),
        RunBuilder().says("a", LONG).says("b", LONG),
        RunBuilder().says("a", LONG, synthetic=True).says("a", LONG, synthetic=True),
        RunBuilder().asks(LONG).asks(LONG),
        RunBuilder().says("a", LONG).says("a", "Costs fell by a fifth, mostly in transport."),
    ],
    ids=["short", "two agents", "the framework's words", "the user's words", "different"],
)
def test_other_messages_are_no_repetition(run):
    assert repeated_messages(run.build()) == []


@pytest.mark.parametrize(("times", "probability"), [(2, 0.86), (3, 0.92), (4, 0.97), (5, 0.97)])
def test_repeating_often_makes_it_more_probable(times, probability):
    """Up to a bound; who calls may be unknown."""
    run = called(*[("", *PAGE[1:])] * times, outcome="failure")
    (found,) = repeated_calls(run.build())
    assert (found.code, found.evidence) == ("1.3", Evidence.EXACT)
    assert found.probability == pytest.approx(probability)
    assert found.reason.startswith(f"An agent called list_bills {times} times")


@pytest.mark.parametrize(
    ("run", "steps"),
    [
        (called(PAGE, RATE, begin=("clerk", "Now.")).says("clerk", "Hm.").calls(*PAGE), [(1, 4)]),
        (called(*[("coder", "run_tests", {"path": "a"}, "3 passed")] * 2), [(0, 1)]),
        (called(PAGE, RATE, PAGE, RATE), [(0, 2), (1, 3)]),
        (called(*[("a", "search", {}, "." * 40 + "7")] * 2), []),
        (called(*[("a", "search", {}, "." * 39 + "7")] * 2), [(0, 1)]),
        (called(*[("a", "search", {})] * 3, error="none"), [(0, 1, 2)]),
        (
            RunBuilder()
            ._add(kind=StepKind.TOOL, agent="a", tool="search", text=BILLS)
            ._add(kind=StepKind.TOOL, agent="a", tool="search", text=BILLS),
            [],
        ),
    ],
    ids=[
        *("looked up between", "any tool", "two of them", "40 characters of nothing"),
        *("39 characters of nothing", "error", "arguments not captured"),
    ],
)
def test_which_calls_are_repeated(run, steps):
    """Looking something else up changes no answer; what is repeated need not look up anything."""
    built = replace(run.build(), outcome="failure")
    assert [each.steps for each in repeated_calls(built)] == steps


@pytest.mark.parametrize(
    ("length", "others", "times", "found"),
    [
        (59, 0, 2, False),
        (60, 0, 2, True),
        (60, 2, 2, True),
        (60, 3, 2, False),
        (60, 3, 3, False),
        (60, 3, 4, True),
        (60, 0, 6, True),
        (60, 0, 3, True),
    ],
)
def test_messages_of_60_characters_and_one_repetition_in_four(length, others, times, found):
    """Three of more messages must be repetitions."""
    run = RunBuilder().says("boss", "Go on.")
    for number in range(others):
        run.says("writer", f"Chapter {number} deals with {number * 37}. " + "xyz"[number] * 90)
    for _ in range(times):
        run.says("writer", LONG[:length])
    assert bool(repeated_messages(run.build())) is found


@pytest.mark.parametrize(("others", "found"), [(11, True), (12, False)])
def test_near_copies_are_sought_in_the_last_twelve_messages(others, found):
    """The third copy is near the second one, however far the first one is."""
    run = RunBuilder().says("boss", "Go on.").says("writer", LONG * 2).says("writer", LONG * 2)
    for number in range(others):
        run.says("writer", f"{number * 37} " + "abcdefghijklmn"[number] * 90)
    run.says("writer", LONG * 2 + "So.").says("writer", LONG * 2 + "Yes.")
    assert bool(repeated_messages(run.build())) is found


def test_one_agent_that_answers_again_does_not_repeat_a_step():
    """The user who asks the agent again may not be recorded."""
    run = RunBuilder().asks().says("agent", LONG).says("agent", LONG).says("agent", LONG)
    assert repeated_messages(run.build()) == []


def test_a_revision_is_no_repetition():
    """A reviewer asked for the change; the very same text after that is one."""
    asked = "In the third line the total is wrong, please correct that and send the report again."
    revised = RunBuilder().says("writer", LONG * 3).says("critic", asked)
    revised.says("writer", LONG * 3 + "The total is 7.")
    assert repeated_messages(revised.build()) == []
    same = RunBuilder().says("writer", LONG * 3).says("critic", asked).says("writer", LONG * 3)
    assert repeated_messages(same.build())
