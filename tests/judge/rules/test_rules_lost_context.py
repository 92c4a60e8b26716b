"""Mode 1.4 at its edges: what is lost, when, and for whom."""

from dataclasses import replace

import pytest
from judge.builders import RunBuilder

from mast_trace_judge.local.rules import lost_context
from mast_trace_judge.local.rules.lost_context import asked_again, asks_for_what_it_had
from mast_trace_judge.verdict import Evidence

ROOM = "Double room in Lisbon near the harbour: 118 EUR per night"
QUESTION = "What is the price of a double room in Lisbon near the harbour?"
UNKNOWN = "I don't know the price of a double room in Lisbon near the harbour"


def _books(run: RunBuilder, result: str = ROOM, **more: int) -> RunBuilder:
    return run.calls("clerk", "hotel_price", {"city": "Lisbon"}, result, **more)


def _two_turns(output: int | None, *second: int) -> RunBuilder:
    """Two turns of the clerk's; a price is looked up in the first one."""
    run = RunBuilder("Plan the trip.").asks()
    run.shown("clerk", 0, kind="agent", span="t1", output=output).shown("clerk", 0, parent="t1")
    _books(run).shown("clerk", 0, 1, parent="t1").says("clerk", "Noted.").asks("And now?")
    run.shown("clerk", *second, kind="agent", span="t2")
    return _books(run.shown("clerk", *second, parent="t2"))


def test_a_turn_that_goes_on_without_what_tools_returned_has_lost_it():
    """The next turn is shown what the last one ended with, and not what it had looked up."""
    (found,) = asked_again(_two_turns(2, 0, 2, 3).build())
    assert (found.code, found.evidence, found.steps) == ("1.4", Evidence.EXACT, (1, 4))


@pytest.mark.parametrize(
    ("output", "second"),
    [(None, (0, 2, 3)), (2, (0, 3)), (2, (0, 1, 2, 3))],
    ids=["nothing came of it", "not shown what came of it", "shown all"],
)
def test_a_turn_that_continues_no_other_has_lost_nothing(output, second):
    """Without the last turn's own words in its input it may be another conversation."""
    assert asked_again(_two_turns(output, *second).build()) == []


@pytest.mark.parametrize(
    ("agent", "kind", "next_turn"),
    [("helper", "agent", (0, 2)), ("helper", "model", (0, 2)), ("clerk", "agent", (0, 1, 2))],
)
def test_what_was_shown_within_a_turn_is_not_lost(agent, kind, next_turn):
    """To a helper within the turn, or to an inner turn of the clerk's and the next one, but to no model."""
    run = RunBuilder("Plan the trip.").asks()
    run.shown("clerk", 0, kind="agent", span="t1", output=2).shown("clerk", 0, parent="t1")
    _books(run).shown(agent, 0, 1, kind=kind, parent="t1").says("clerk", "Noted.")
    run.shown("clerk", *next_turn, kind="agent", span="t2").shown("clerk", 0, 2, parent="t2")
    assert asked_again(_books(run).build()) == []


def _lost(result: str = ROOM) -> RunBuilder:
    """A price that was shown at time 4 and at time 6 no more, by calls below one span."""
    run = RunBuilder("Plan the trip.").asks().shown("clerk", 0, parent="p1")
    _books(run, result).shown("clerk", 0, 1, parent="p1").says("clerk", "Noted.")
    return run.shown("clerk", 0, 2, parent="p1")


@pytest.mark.parametrize(("time", "lost"), [(5, False), (6, True), (7, True)])
def test_a_result_is_lost_from_the_first_call_without_it(time, lost):
    """Asked for at that very time, it is gone; before, it is not."""
    run = _books(_lost(), start=time, end=time)
    assert bool(asked_again(run.build())) is lost


@pytest.mark.parametrize("time", [7, 8])
def test_a_result_that_another_call_showed_since_is_not_lost(time):
    """Below another span, until the very time of the second call; no text need be recorded."""
    run = _lost("").shown("clerk", 0, 1, 2, parent="p2")
    assert asked_again(_books(run, start=time, end=time).build()) == []


def test_a_result_without_text_is_not_lost_before_it_is_gone():
    """Nothing quotes an empty text."""
    run = RunBuilder("Plan the trip.").asks().shown("clerk", 0)
    _books(run, "").shown("clerk", 0, 1)
    run = _books(run, "").shown("clerk", 0)
    assert asked_again(run.build()) == []


def test_of_several_losses_the_one_before_the_second_call_counts():
    """A later loss below the first span does not hide it."""
    run = RunBuilder("Plan the trip.").asks().shown("clerk", 0, parent="p1")
    _books(run).shown("clerk", 0, 1, parent="p1").says("clerk", "Noted.")
    run.shown("clerk", 0, 1, parent="p2").shown("clerk", 0, 2, parent="p2")
    (found,) = asked_again(_books(run).shown("clerk", 0, 2, parent="p1").build())
    assert found.steps == (1, 3)


def test_a_call_of_which_only_the_length_is_known_loses_nothing():
    """Messages shown after it are held against those shown before."""
    run = RunBuilder("Plan the trip.").asks().shown("clerk", 0)
    _books(run).shown("clerk", 0, 1).shown("clerk", length=90).says("clerk", "Noted.")
    (found,) = asked_again(_books(run.shown("clerk", 0, 2)).build())
    assert found.steps == (1, 3)


def test_handing_over_again_asks_for_nothing():
    """A hand-off returns no result."""
    run = RunBuilder().asks().shown("clerk", 0).hands_over("clerk", "boss").shown("clerk", 0, 1)
    run.says("clerk", "Noted.").shown("clerk", 0, 2).hands_over("clerk", "boss")
    assert asked_again(run.build()) == []


@pytest.mark.parametrize(
    ("text", "quotes"),
    [
        (QUESTION, (QUESTION,)),
        (f"{UNKNOWN}?", (UNKNOWN,)),
        ("Alpha. What of a double room in Lisbon?", ()),
        ("What of a double room in Lisbon near?", ("What of a double room in Lisbon near?",)),
        ("What is next?", ()),
        ("I know what the price of a double room in Lisbon near the harbour is.", ()),
        (f"{QUESTION[:-1]}{' and so on' * 20}?", (f"{QUESTION[:-1]}{' and so on' * 20}"[:160],)),
    ],
)
def test_a_question_shares_four_words_with_what_was_lost(text, quotes):
    """The sentence must be a question or report something missing, and is quoted up to 160 characters."""
    found = asks_for_what_it_had(_lost().says("clerk", text).build())
    assert [each.quotes for each in found] == ([quotes] if quotes else [])


def test_what_a_tool_returns_asks_for_nothing():
    """The agent itself asks nothing."""
    run = _lost().calls("clerk", "faq", {"topic": "rooms"}, QUESTION)
    assert asks_for_what_it_had(run.build()) == []


@pytest.mark.parametrize(("time", "asks"), [(5, False), (6, True), (7, True)])
def test_a_question_asks_for_what_is_gone_by_then(time, asks):
    """At the very time of the first call without it, it is gone."""
    run = _lost().says("clerk", QUESTION, start=time, end=time)
    assert bool(asks_for_what_it_had(run.build())) is asks


def test_calls_at_one_time_lose_nothing_to_each_other():
    """The order of calls that begin together is unknown."""
    built = _lost().says("clerk", QUESTION).build()
    first, second, third = built.invocations
    calls = (first, second, replace(third, start=second.start, end=second.start))
    assert asks_for_what_it_had(replace(built, invocations=calls)) == []


def test_a_lost_message_whose_text_is_unknown_says_nothing():
    """A lost id without a text on any span proves nothing."""
    run = RunBuilder("Plan the trip.").asks().shown("clerk", 0, 99).shown("clerk", 0)
    assert asks_for_what_it_had(run.says("clerk", QUESTION).build()) == []


@pytest.mark.parametrize(("end", "read"), [(4000, True), (4001, False)])
def test_the_first_4000_characters_of_what_was_lost_are_read(end, read):
    """A word that goes on behind them is cut."""
    text = "alpha beta gamma".ljust(end - 3, ".") + "zoo"
    run = RunBuilder("Plan the trip.").asks().shown("clerk", 0)
    run.calls("clerk", "look_up", {}, text).shown("clerk", 0, 1).shown("clerk", 0)
    run.says("clerk", "What of alpha beta gamma zoo?")
    assert bool(asks_for_what_it_had(run.build())) is read


@pytest.mark.parametrize(("length", "read"), [(1500, True), (1501, False)])
def test_the_last_1500_characters_of_a_message_are_read(length, read):
    """A word that begins before them is cut."""
    run = RunBuilder("Plan the trip.").asks().shown("clerk", 0)
    run.calls("clerk", "look_up", {}, "alpha beta gamma zoo").shown("clerk", 0, 1)
    run.shown("clerk", 0).says("clerk", "zoo alpha beta gamma what?".ljust(length, "."))
    assert bool(asks_for_what_it_had(run.build())) is read


@pytest.mark.parametrize(("sought", "asks"), [(1, False), (2, True)])
def test_questions_are_compared_with_so_many_lost_messages(monkeypatch, sought, asks):
    """The first ones that went."""
    monkeypatch.setattr(lost_context, "_SOUGHT", sought)
    run = RunBuilder("Plan the trip.").asks().calls("clerk", "look_up", {}, "Nothing of note.")
    _books(run).shown("clerk", 0, 1, 2).shown("clerk", 0, 2).shown("clerk", 0)
    assert bool(asks_for_what_it_had(run.says("clerk", QUESTION).build())) is asks
