"""Agents that can answer for a step, and those that each rule of the untrained cascade names."""

from dataclasses import replace

import pytest
from judge.builders import RunBuilder

from mast_trace_judge.local.attribution import attribute
from mast_trace_judge.local.attribution.cascade import (
    answerable,
    before_first_failure,
    fails_from_here,
    introduces_answer,
    writes_surviving_code,
)

FAILS = {"error": "ZeroDivisionError: division by zero"}


def asked(task="Please compute it."):
    return RunBuilder(task, outcome="failure").asks()


def fenced(*lines):
    return "```python\n" + "\n".join(lines) + "\n```"


@pytest.mark.parametrize(
    ("run", "steps"),
    [
        # An executor bears the name of its tool, and only ever runs what others wrote.
        (asked().says("coder", "Run it.").calls("terminal", "terminal", {}), [1]),
        # An agent that does nothing but call tools is no executor.
        (asked().says("lead", "Look.").calls("clerk", "lookup", {}), [1, 2]),
        # Nor is an agent with the name of a tool that also speaks.
        (asked().calls("search", "search", {}).says("search", "Nothing."), [1, 2]),
        (asked().says("lead", "Clerk?").hands_over("lead", "clerk").says("clerk", "Yes."), [1, 3]),
        (asked().says("lead", "Go.").says("lead", "Agents: lead.", synthetic=True), [1]),
        # Where nobody is left, executors answer for themselves; a user never does.
        (asked().calls("terminal", "terminal", {}), [1]),
        (asked().asks("Hello?"), []),
    ],
)
def test_who_can_answer(run, steps):
    assert answerable(run.build().steps) == steps


def test_stand_ins_of_group_chats_cannot_answer():
    """AG2 puts a person's words into the mouth of "_User", and a tool's result into an executor's."""
    run = RunBuilder("Refund?", outcome="failure").says("_User", "Refund?")
    run.says("clerk", "").calls("clerk", "look_up", {}, "59 EUR")
    run.says("_Group_Tool_Executor", "59 EUR").says("clerk", "You get 590 EUR.")
    steps = list(run.build().steps)
    steps[3] = replace(steps[3], role="tool")
    assert answerable(steps) == [1, 2, 4]


@pytest.mark.parametrize(
    ("run", "step"),
    [
        (asked().says("coder", "Run it.").calls("terminal", "terminal", {}, **FAILS), 1),
        (asked().says("lead", "Look.").calls("clerk", "lookup", {}, **FAILS), 2),
        # The user's messages in between exonerate nobody.
        (asked().says("coder", "It.").asks("Go on.").calls("terminal", "terminal", {}, **FAILS), 1),
        # Nor does a call of another tool.
        (
            asked()
            .says("coder", "It.")
            .calls("clerk", "lookup", {}, "7")
            .calls("terminal", "terminal", {}, **FAILS),
            1,
        ),
        (asked().calls("terminal", "terminal", {}, **FAILS).says("coder", "Sorry."), None),
        (asked().says("coder", "Run it.").calls("terminal", "terminal", {}, "7"), None),
    ],
)
def test_who_caused_the_first_failed_run(run, step):
    steps = run.build().steps
    assert before_first_failure(steps, answerable(steps)) == step


@pytest.mark.parametrize(
    ("outcomes", "step"),
    [("fxx", 2), ("xxff", 1), ("xxfff", None), ("fx", None), ("ff", None)],
    ids=["two", "half", "fewer than half", "one", "none"],
)
def test_tools_that_fail_from_one_run_on(outcomes, step):
    run = asked()
    for number, outcome in enumerate(outcomes):
        run.calls("clerk", "look_up", {"n": number}, "Fine.", **(FAILS if outcome == "x" else {}))
    assert fails_from_here(run.build().steps) == step


@pytest.mark.parametrize(
    ("run", "step"),
    [
        (asked().says("lead", "Hm.").says("reader", "84 it is.").says("lead", "Answer: 84"), 2),
        # An executor's output is the last agent's doing.
        (
            asked()
            .says("coder", "Run it.")
            .calls("terminal", "terminal", {}, "84")
            .says("lead", "FINAL ANSWER: 84"),
            1,
        ),
        # Before any agent has acted, nobody brought it up.
        (asked().calls("terminal", "terminal", {}, "84").says("lead", "FINAL ANSWER: 84"), None),
        # A value that the task holds is nobody's.
        (asked("Is it 84?").says("lead", "FINAL ANSWER: 84"), None),
    ],
)
def test_who_brought_up_the_final_answer(run, step):
    trajectory = run.build()
    assert introduces_answer(trajectory, answerable(trajectory.steps)) == step


HALF = fenced("total = sum(prices)", "count = len(prices)")
THIRD = fenced("total = sum(prices)", "first_one = prices[0]")
WHOLE = ("total = sum(prices)", "count = len(prices)", "mean = total / count")


@pytest.mark.parametrize(
    ("early", "last", "step"),
    [
        (fenced(*WHOLE), fenced(*WHOLE), 1),
        (HALF, fenced(*WHOLE, "print(mean)"), 1),
        (THIRD, fenced(*WHOLE), 2),
        # Lines of nine characters count, those of eight are everybody's.
        (fenced("a = 12345"), fenced("a = 12345", "x = 1", "y = 1234"), 1),
        (fenced("a = 1234", "  a = 1234"), fenced("a = 1234"), None),
        ("No code.", fenced(*WHOLE), 2),
        ("No code.", "Nor here.", None),
    ],
    ids=["all", "half", "third", "nine characters", "eight characters", "late", "none"],
)
def test_who_wrote_the_code_that_survives(early, last, step):
    run = asked().says("coder", early).says("tester", last)
    assert writes_surviving_code(run.build().steps) == step


def test_code_of_the_users_blames_the_first_actor_alone():
    """A rule that names a step for which no agent answers has no say."""
    run = RunBuilder(f"Why does it fail?\n{fenced(*WHOLE)}", outcome="failure").asks()
    found = attribute(run.says("lead", "Hm.").says("coder", "It does not.").build())
    assert set(found.probabilities) == {1, 2}
    assert [candidate.rule for candidate in found.candidates] == ["first actor", ""]
