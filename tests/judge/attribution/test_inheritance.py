"""The step that introduced a wrong answer is decisive, not the steps that only pass it on."""

import pytest
from judge.builders import RunBuilder

from mast_trace_judge.local.attribution import attribute
from mast_trace_judge.local.attribution.cascade import Inheritance, Vote, inheritance
from mast_trace_judge.local.rules import find_modes


def chain(*, wrong="181", outcome="failure"):
    """Make a run in which a reader misreads a price and every later agent repeats it."""
    run = RunBuilder("What do three nights cost?", outcome=outcome).asks()
    run.calls("reader", "room_price", {"city": "Lisbon"}, "118 EUR per night")
    run.says("reader", f"A night costs {wrong} EUR.", to="writer")
    run.says("writer", f"The price is {wrong} EUR.", to="checker")
    run.says("checker", f"I confirm {wrong} EUR.", to="lead")
    return run.says("lead", f"FINAL ANSWER: {wrong}")


def test_steps_that_only_pass_a_figure_on():
    run = chain().build()
    assert inheritance(run, range(1, 6)) == Inheritance(2, frozenset({3, 4, 5}))
    run = RunBuilder("What do three nights cost?").says("reader", "A night costs 181 EUR.")
    run.calls("writer", "round", {"n": 1}, "181").says("writer", "The price is 181 EUR.")
    found = inheritance(run.says("lead", "FINAL ANSWER: 181").build(), range(4))
    assert found == Inheritance(0, frozenset({2, 3}))


@pytest.mark.parametrize(
    "run",
    [
        RunBuilder().says("a", "It is Lisbon.").says("b", "FINAL ANSWER: Lisbon"),
        RunBuilder("Is it 84?").says("a", "It is 84.").says("b", "FINAL ANSWER: 84"),
        RunBuilder().says("a", "Hm.").says("b", "No."),
        RunBuilder(),
    ],
    ids=["words", "of the task", "no answer", "empty"],
)
def test_where_nobody_inherits(run):
    """An answer in words, one that the task holds, or no answer has neither origin nor relays."""
    built = run.build()
    assert inheritance(built, range(len(built.steps))) == Inheritance()


def test_whoever_adds_something_passes_more_than_that_on():
    run = RunBuilder().says("a", "It is 84.").says("b", "84 of 97.").says("c", "```\nx = 84\n```")
    assert inheritance(run.says("d", "FINAL ANSWER: 84").build(), range(4)).relays == {3}


def test_the_origin_comes_first_and_gets_the_votes():
    """Likeliest relay and origin exchange probabilities; a step with an exact finding keeps its own."""
    found = Inheritance(2, frozenset({3, 5}))
    weights = {1: 0.1, 2: 0.2, 3: 0.4, 4: 0.1, 5: 0.2}
    assert found.origin_first(weights, set()) == {**weights, 2: 0.4, 3: 0.2}
    assert found.origin_first(weights, {3}) == weights
    assert found.origin_first({1: 1.0}, set()) == {1: 1.0}
    assert Inheritance().origin_first(weights, set()) == weights
    votes = [Vote(3, 1.0, "2.6: why"), Vote(1, 1.0, "2.6: why"), Vote(3, 1.0, "3.3: why")]
    assert [vote.step for vote in found.moved(votes)] == [2, 1, 3]  # an approval is the relay's own
    assert Inheritance().moved(votes) == votes


def test_the_reader_and_not_the_checker_is_decisive():
    """Rules and attribution together name the reader's step."""
    run = chain().build()
    found = attribute(run, find_modes(run))
    assert (found.candidates[0].step, found.candidates[0].agent) == (2, "reader")
    assert all(each.step not in {3, 4, 5} for each in found.candidates[:1])


def test_the_first_of_two_wrong_statements_is_the_error():
    """Two agents misstate results of tools: the first comes first, since later steps may build on it."""
    run = RunBuilder("Add up.", outcome="failure").asks()
    run.calls("a", "count_rows", {}, "4711").says("a", "The tool returned 5120.")
    run.calls("b", "count_pages", {}, "6833").says("b", "The tool returned 7902.")
    run.says("lead", "We have both.")
    found = attribute(run.build(), find_modes(run.build()))
    assert (found.candidates[0].step, found.candidates[0].agent) == (2, "a")
