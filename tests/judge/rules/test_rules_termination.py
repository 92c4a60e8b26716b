"""Mode 1.5: running on past the end, or into a limit."""

import pytest
from judge.builders import RunBuilder

from mast_trace_judge.rules.termination import (
    ended_by_limit,
    went_on_after_done,
    went_on_after_signal,
)
from mast_trace_judge.verdict import Evidence


@pytest.mark.parametrize("reason", ["max_turns", "recursion_limit", "budget"])
def test_a_limit_that_ends_the_run_is_exact(reason):
    """The recorded termination reason is the evidence."""
    (found,) = ended_by_limit(RunBuilder(termination_reason=reason).says("a", "More.").build())
    assert (found.code, found.evidence, found.steps) == ("1.5", Evidence.EXACT, (0,))


def test_a_recursion_limit_weighs_more_than_a_limit_of_turns():
    """Chats are often bounded by turns on purpose."""
    run = RunBuilder().says("a", "More.")
    limits = [
        ended_by_limit(RunBuilder(termination_reason=reason).says("a", "More.").build())[0]
        for reason in ("recursion_limit", "max_turns")
    ]
    assert limits[0].probability > limits[1].probability
    assert ended_by_limit(run.build()) == []


def test_a_successful_run_may_use_up_its_turns():
    """After a success the limit was simply reached."""
    run = RunBuilder(termination_reason="max_turns", outcome="success").says("a", "Done.")
    assert ended_by_limit(run.build()) == []


def test_an_answer_to_the_terminate_signal_is_exact():
    """The one who got the signal answers its sender in the same conversation."""
    run = RunBuilder().says("critic", "All good. TERMINATE", to="writer")
    run.says("writer", "Thank you, here is one more version.", to="critic")
    (found,) = went_on_after_signal(run.build())
    assert (found.evidence, found.steps) == (Evidence.EXACT, (0, 1))
    assert found.quotes == ("All good. TERMINATE",)


def test_the_end_of_a_nested_conversation_is_no_end_of_the_outer_one():
    """The writer reports to the user after the inner chat ended."""
    run = RunBuilder().inside("inner").says("critic", "TERMINATE", to="writer")
    run.inside("outer").says("writer", "Here is the text.", to="editor")
    assert went_on_after_signal(run.build()) == []


def test_a_transcript_that_goes_on_after_the_signal_is_heuristic():
    """Without spans, nested conversations cannot be told apart."""
    run = RunBuilder(spans=False).says("a", "Solved.\n\nTERMINATE")
    run.says("b", "I agree.").says("a", "Good.").says("b", "Indeed.")
    (found,) = went_on_after_signal(run.build())
    assert found.evidence is Evidence.HEURISTIC


@pytest.mark.parametrize(
    "text",
    ['Reply me only with "TERMINATE"', "We TERMINATE the lease in May.", "terminated", ""],
)
def test_speaking_of_the_signal_is_not_giving_it(text):
    """The word counts at the very end and outside quotation marks."""
    run = RunBuilder().says("a", text, to="b").says("b", "Go on.", to="a").says("a", "Yes.", to="b")
    assert went_on_after_signal(run.build()) == []


def test_declaring_the_task_done_again_and_again_is_heuristic():
    """Two declarations, long before the end."""
    run = RunBuilder().says("a", "The task is complete.").says("b", "Yes, the task is completed.")
    for number in range(8):
        run.says("a", f"Another remark, number {number}.")
    (found,) = went_on_after_done(run.build())
    assert found.evidence is Evidence.HEURISTIC
    assert found.quotes == ("task is complete", "task is completed")


def test_declaring_the_task_done_once_at_the_end_is_fine():
    """That is how runs are supposed to end."""
    run = RunBuilder()
    for number in range(8):
        run.says("a", f"Remark number {number}.")
    assert went_on_after_done(run.says("a", "The task is complete.").build()) == []


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
    """Others in the same conversation may have been told nothing."""
    run = RunBuilder().says("critic", "All good. TERMINATE", to=to)
    run.says("lead", "And now?", to="writer").says(answer, "One more version.", to=answer_to)
    (found,) = went_on_after_signal(run.build())
    assert found.evidence is (Evidence.EXACT if exact else Evidence.HEURISTIC)
    assert found.steps == ((0, 2) if exact else (0, 1, 2))
