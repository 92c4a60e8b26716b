"""Mode 1.5: running on past the end, or into a limit."""

import pytest
from judge.builders import RunBuilder

from mast_trace_judge.local.rules.termination import (
    ended_by_limit,
    went_on_after_done,
    went_on_after_signal,
)
from mast_trace_judge.verdict import Evidence


@pytest.mark.parametrize("reason", ["max_turns", "recursion_limit", "budget"])
def test_a_limit_that_ends_the_run_is_exact(reason):
    """The recorded termination reason is the evidence, and the last step is named."""
    run = RunBuilder(termination_reason=reason).says("a", "One.").says("a", "Two.")
    (found,) = ended_by_limit(run.build())
    assert (found.code, found.evidence) == ("1.5", Evidence.EXACT)
    assert (found.steps, found.quotes) == ((1,), ("Two.",))


def test_a_recursion_limit_weighs_more_than_a_limit_of_turns():
    """Chats are often bounded by turns on purpose."""
    run = RunBuilder().says("a", "More.")
    limits = [
        ended_by_limit(RunBuilder(termination_reason=reason).says("a", "More.").build())[0]
        for reason in ("recursion_limit", "max_turns")
    ]
    assert limits[0].probability > limits[1].probability
    assert ended_by_limit(run.build()) == []


@pytest.mark.parametrize(
    ("task", "outcome"), [("Find out.", "success"), ("Debate it for four rounds.", "failure")]
)
def test_a_run_may_use_up_its_turns(task, outcome):
    """After a success the limit was simply reached, and a task may set it."""
    run = RunBuilder(task, termination_reason="max_turns", outcome=outcome).says("a", "Done.")
    assert ended_by_limit(run.build()) == []


def test_the_end_of_a_nested_conversation_is_no_end_of_the_outer_one():
    """The writer reports to the user after the inner chat ended."""
    run = RunBuilder().inside("inner").says("critic", "TERMINATE", to="writer")
    run.inside("outer").says("writer", "Here is the text.", to="editor")
    assert went_on_after_signal(run.build()) == []


def test_a_transcript_that_goes_on_after_the_signal_is_heuristic():
    """Without spans, nested conversations are indistinguishable."""
    run = RunBuilder(spans=False).says("a", "Solved.\n\nTERMINATE")
    run.says("b", "I agree.").says("a", "Good.").says("b", "Indeed.")
    (found,) = went_on_after_signal(run.build())
    assert found.evidence is Evidence.HEURISTIC


@pytest.mark.parametrize(
    "text", ['Reply me only with "TERMINATE"', "We TERMINATE the lease in May.", "terminated", ""]
)
def test_speaking_of_the_signal_is_not_giving_it(text):
    """The word counts at the very end and outside quotation marks."""
    run = RunBuilder().says("a", text, to="b").says("b", "Go on.", to="a").says("a", "Yes.", to="b")
    assert went_on_after_signal(run.build()) == []


@pytest.mark.parametrize(
    ("to", "answer", "answer_to", "exact"),
    [
        ("writer", "writer", "critic", True),
        ("writer", "writer", "editor", False),  # speaks to somebody else
        ("writer", "editor", "critic", False),  # did not get the signal
        ("writer", "critic", "writer", True),  # goes on with those whom it told to stop
        ("writer", "critic", "editor", False),
    ],
)
def test_only_those_in_the_exchange_that_was_to_end_answer_the_signal(to, answer, answer_to, exact):
    """Other agents in the same conversation may not have received the signal."""
    run = RunBuilder().says("critic", "All good. TERMINATE", to=to)
    run.says("lead", "And now?", to="writer").says(answer, "One more version.", to=answer_to)
    (found,) = went_on_after_signal(run.build())
    assert found.evidence is (Evidence.EXACT if exact else Evidence.HEURISTIC)
    assert found.steps == ((0, 2) if exact else (0, 1, 2))


@pytest.mark.parametrize(("length", "found"), [(60, True), (61, False)])
def test_the_signal_is_in_the_last_60_characters(length, found):
    """Dots may follow it."""
    run = RunBuilder().says("a", "Hello.", to="b").says("b", "x" + "TERMINATE".ljust(length, "."))
    assert bool(went_on_after_signal(run.says("a", "Hm?", to="b").build())) is found


def test_five_answers_to_the_signal_are_named_and_its_sentence_quoted():
    """All are counted."""
    sentence = "We are done with all of it now, so let us stop. TERMINATE".rjust(60, "-")[-60:]
    run = RunBuilder().says("critic", f"One. Two. {sentence}", to="writer")
    for number in range(6):
        run.says("writer", f"Version {number}.", to="critic")
    (found,) = went_on_after_signal(run.build())
    assert (found.steps, found.quotes) == ((0, 1, 2, 3, 4, 5), (sentence,))
    assert "6 more steps" in found.reason


DONE = ("task is complete", "request is done", "problem is solved")


@pytest.mark.parametrize(
    ("steps", "declared", "named"),
    [
        (8, (0, 5), (0, 5)),
        (8, (0, 6), ()),
        (8, (7,), ()),
        (12, (6, 8), (6, 8)),
        (12, (7, 8), ()),
        (12, (0, 1, 2, 3, 4, 5), (0, 1, 2, 3, 4)),
    ],
)
def test_the_task_is_declared_done_twice_in_three_quarters_of_the_run(steps, declared, named):
    """With six steps to come from the first time on; five are named, and two quoted."""
    run = RunBuilder()
    for number in range(steps):
        run.says("a", f"The {DONE[number % 3]}." if number in declared else f"Remark {number}.")
    found = went_on_after_done(run.build())
    assert [each.steps for each in found] == ([named] if named else [])
    quotes = tuple(dict.fromkeys(DONE[number % 3] for number in declared[:2]))
    assert all(each.quotes == quotes for each in found)


@pytest.mark.parametrize(("length", "found"), [(600, True), (601, False)])
def test_the_task_is_declared_done_in_the_last_600_characters(length, found):
    """A word that begins before them is cut."""
    run = RunBuilder()
    for number in range(8):
        text = "The " + "task is done".ljust(length, ".")
        run.says("a", text if number < 2 else f"Remark {number}.")
    assert bool(went_on_after_done(run.build())) is found
