"""Mode 2.1: a conversation that starts over."""

from dataclasses import replace

import pytest
from judge.builders import RunBuilder

from mast_trace_judge.local.rules.reset import lost_input, restarted
from mast_trace_judge.verdict import Evidence

PLAN = (
    "First I read the customer's contract, then I list the open invoices, and in the end I compare "
    "both and write a short letter to the customer about what is due."
)


def _grown() -> RunBuilder:
    run = RunBuilder().asks().shown("clerk", 0).says("clerk", "One.").shown("clerk", 0, 1)
    return run.says("clerk", "Two.").shown("clerk", 0, 1, 2).says("clerk", "Three.")


@pytest.mark.parametrize(
    ("said", "to", "evidence"),
    [
        ("Well?", "clerk", Evidence.EXACT),
        ("Well?", (), Evidence.EXACT),
        ("Well?", "writer", Evidence.HEURISTIC),
        ("", "", Evidence.HEURISTIC),
    ],
    ids=["to it", "to all", "to another", "nothing"],
)
def test_an_input_that_is_the_first_one_again_is_a_reset(said, to, evidence):
    """All since the beginning is gone; unless somebody has spoken to the agent, it may be asked anew on purpose."""
    run = _grown()
    if said:
        run.says("boss", said, to=to)
    (found,) = lost_input(run.shown("clerk", 0).says("clerk", "One?").build())
    assert (found.code, found.evidence, found.quotes) == ("2.1", evidence, ("One?",))
    assert found.probability == (0.9 if evidence is Evidence.EXACT else 0.6)


@pytest.mark.parametrize(
    "run",
    [
        _grown().asks("Something else, please.").shown("clerk", 4),
        _grown().shown("clerk", 0, 2, 3),
        RunBuilder().asks().shown("clerk", 0).shown("clerk", 0).shown("clerk", 0),
    ],
    ids=["a new task", "a window over the last messages", "the same question several times"],
)
def test_what_is_no_reset(run):
    assert lost_input(run.says("clerk", "Fine.").build()) == []


@pytest.mark.parametrize(
    "phrase", ["Let's start over.", "I will begin from scratch now.", "We restart the process."]
)
def test_words_of_starting_over_are_heuristic(phrase):
    """Read off the text, after the first quarter of the run."""
    run = RunBuilder()
    for number in range(8):
        run.says("clerk", f"Invoice {number} is read.")
    (found,) = restarted(run.says("clerk", phrase).build())
    assert (found.evidence, found.steps) == (Evidence.HEURISTIC, (8,))
    assert found.quotes[0] in phrase


BEGINNING = (("clerk", PLAN), ("boss", "Well, begin."))


@pytest.mark.parametrize(
    ("between", "again", "steps"),
    [
        (("Invoice 1.", "Invoice 2."), (*BEGINNING,), (4,)),
        (("Invoice 1.", "Invoice 2."), (("clerk", PLAN + " So."), BEGINNING[1]), (4,)),
        (("Invoice 1.", "Invoice 2."), (*BEGINNING, *BEGINNING), (4, 6)),
        (("Invoice 1.", "Invoice 2."), (BEGINNING[0], ("boss", "Not again.")), ()),
        (("Invoice 1.", "Invoice 2."), (("boss", PLAN), BEGINNING[1]), ()),
        ((PLAN, PLAN), (*BEGINNING,), ()),
        ((), (*BEGINNING, *BEGINNING), ()),
    ],
    ids=[
        "again",
        "other words",
        "twice",
        "one of the two",
        "another agent",
        "a form",
        "no progress",
    ],
)
def test_a_run_begins_again_with_its_first_two_messages(between, again, steps):
    """One message that comes again is a repetition, or a form that the agent always uses."""
    run = RunBuilder()
    for agent, text in BEGINNING:
        run.says(agent, text)
    for text in between:
        run.says("clerk", text)
    for agent, text in again:
        run.says(agent, text)
    assert [found.steps for found in restarted(run.build())] == ([steps] if steps else [])


def _turn(run: RunBuilder, span: str, seen: tuple[int, ...], shown: tuple[int, ...]) -> RunBuilder:
    """Let the agent act once: what the turn saw, and what its model was shown of it."""
    run.shown("clerk", *seen, kind="agent", span=span)
    return run.shown("clerk", *shown, parent=span)


def test_a_node_that_drops_the_history_is_an_exact_reset():
    """The turn sees the whole state, and its model only what it saw at first."""
    run = _turn(RunBuilder().asks(), "t1", (0,), (0,)).says("clerk", "One.").says("boss", "On.")
    _turn(run, "t2", (0, 1, 2), (0, 1, 2)).says("clerk", "Two.").says("boss", "On.")
    _turn(run, "t3", (0, 1, 2, 3, 4), (0,)).says("clerk", "One?")
    (found,) = lost_input(run.build())
    assert (found.evidence, found.steps) == (Evidence.EXACT, (5,))


def test_asking_an_agent_anew_is_no_reset():
    """The second turn sees no more than the first: the program began another conversation."""
    run = RunBuilder().asks()
    for number in range(2):
        _turn(run, f"t{number}", (0,), (0,))
        run.calls("clerk", "bills", {"p": number}, "1").calls("clerk", "bills", {"q": number}, "2")
        run.shown("clerk", 0, 1, 2, parent=f"t{number}").says("clerk", "Three.")
    assert lost_input(run.build()) == []


def test_a_second_prompt_in_every_turn_is_no_reset():
    """A node may first plan and then write, each time with the plan in its input."""
    run = RunBuilder().asks()
    for number in range(3):
        _turn(run, f"t{number}", (0,), (0,))
        run.says("clerk", f"Plan {number}.")
        run.shown("clerk", 0, 1, parent=f"t{number}").says("clerk", f"Text {number}.")
    assert lost_input(run.build()) == []


LEAST = {1: 3, 2: 4, 4: 6, 6: 9, 10: 15}
"""The least length of an input that has grown enough since, by its first length."""


@pytest.mark.parametrize(
    ("first", "peak", "reset"),
    [
        *[(first, least - 1, False) for first, least in LEAST.items()],
        *[(first, least, True) for first, least in LEAST.items()],
    ],
)
def test_an_input_has_grown_by_half_and_by_two_messages(first, peak, reset):
    """Short inputs need two more messages, long ones half as many again."""
    run = RunBuilder()
    for _ in range(peak):
        run.says("boss", "A word.")
    run.shown("clerk", *range(first)).shown("clerk", *range(peak)).shown("clerk", *range(first))
    assert bool(lost_input(run.says("clerk", "One?").build())) is reset


@pytest.mark.parametrize(
    ("lengths", "reset"),
    [
        ((1000, 3000, 1000), True),
        ((1000, 2999, 1000), False),
        ((1000, 3000, 1050), True),
        ((1000, 3000, 1051), False),
        ((1000, 3000, 950), True),
        ((1000, 3000, 949), False),
        ((10, 29, 10), False),
        ((10, 30, 10), True),
        ((1000, 1000, 1000), False),
        ((0, 3000, 1000), False),
        ((1000, 3000, 0), False),
    ],
)
def test_a_length_has_fallen_back_from_three_times_to_a_twentieth(lengths, reset):
    """Three times the first length in between, and then the first, give or take 5 %."""
    run = RunBuilder()
    for length in lengths:
        run.shown("clerk", length=length).says("clerk", "Next.")
    assert bool(lost_input(run.build())) is reset


def test_lengths_and_ids_are_not_held_against_each_other():
    """An input of which only the length is known proves nothing about one with ids."""
    known = RunBuilder().asks().says("boss", "One.").says("boss", "Two.")
    known.shown("clerk", 0).shown("clerk", 0, 1, 2).shown("clerk", length=9)
    assert lost_input(known.says("clerk", "Hm?").build()) == []
    unknown = RunBuilder().asks().shown("clerk", length=9).shown("clerk", length=90)
    assert lost_input(unknown.shown("clerk", 0).says("clerk", "Hm?").build()) == []


def test_what_the_agent_did_next_is_named():
    run = _grown().shown("clerk", 0).says("boss", "Well?").says("clerk", "One?")
    (found,) = lost_input(run.says("clerk", "Two?").build())
    assert (found.steps, found.quotes) == ((5,), ("One?",))
    run = _grown().shown("clerk", 0).says("boss", "Well?").says("boss", "Hello?")
    (found,) = lost_input(run.build())
    assert (found.steps, found.quotes) == ((), ())  # others are not to blame


def test_lengths_count_where_the_ids_are_gone():
    """The first calls tell ids and lengths, the last one its length alone."""
    built = _grown().shown("clerk", length=10).says("clerk", "One?").build()
    lengths = (10, 20, 40, 10)
    calls = [
        replace(call, input_length=length)
        for call, length in zip(built.invocations, lengths, strict=True)
    ]
    (found,) = lost_input(replace(built, invocations=tuple(calls)))
    assert (found.evidence, found.steps) == (Evidence.HEURISTIC, (4,))


def test_who_was_shown_nothing_does_not_hide_another_ones_reset():
    """The boss's call has neither recorded ids nor a length, and the clerk does nothing."""
    run = RunBuilder().asks().shown("boss").says("boss", "One.").shown("clerk", 0)
    run.says("boss", "Two.").shown("clerk", 0, 1, 2).says("boss", "Three.").shown("clerk", 0)
    (found,) = lost_input(run.build())
    assert ("clerk" in found.reason, found.steps) == (True, ())


@pytest.mark.parametrize(("index", "found"), [(1, False), (2, True)])
def test_progress_begins_with_the_second_quarter(index, found):
    """The third of eight steps is the first that may start over."""
    run = RunBuilder()
    for number in range(8):
        run.says("clerk", "Let me start over." if number == index else f"Invoice {number}.")
    assert bool(restarted(run.build())) is found


@pytest.mark.parametrize(("end", "found"), [(2000, True), (2001, False)])
def test_words_of_starting_over_count_in_the_first_2000_characters(end, found):
    """A word that goes on behind them is cut."""
    run = RunBuilder().says("clerk", "Invoice 1.").says("clerk", "Invoice 2.")
    run.says("clerk", " we restart the process".rjust(end, ".") + " now.")
    assert bool(restarted(run.build())) is found


@pytest.mark.parametrize(("times", "probability"), [(1, 0.6), (2, 0.7), (3, 0.8), (4, 0.85)])
def test_starting_over_often_makes_it_more_probable(times, probability):
    """Up to a bound; words alone make it possible, and three of the sentences are quoted."""
    run = RunBuilder()
    for agent, text in (*BEGINNING, ("clerk", "Invoice 1."), *BEGINNING * times):
        run.says(agent, text)
    (found,) = restarted(run.build())
    assert found.probability == pytest.approx(probability)
    run = RunBuilder().asks().says("clerk", "Invoice 1.")
    for number in range(times):
        run.says("clerk", f"All is read. Let's start over with {number}. Fine.")
    (found,) = restarted(run.build())
    assert found.probability == pytest.approx(0.45)
    assert found.quotes == tuple(f"Let's start over with {i}." for i in range(min(times, 3)))


@pytest.mark.parametrize(
    "text", ["We need not start over.", "If it fails, we restart the process.", "Do we start over?"]
)
def test_words_that_deny_or_doubt_start_nothing_over(text):
    run = RunBuilder().says("clerk", "Invoice 1.").says("clerk", "Invoice 2.")
    assert restarted(run.says("clerk", text).build()) == []


@pytest.mark.parametrize(
    ("asker", "text", "found"),
    [
        ("user", "Please start over.", False),
        ("lead", "Begin again from the beginning, please.", False),
        ("user", "Do not start over.", True),
        ("user", "Please restart the server.", True),
        ("clerk", "Please start over.", True),
    ],
)
@pytest.mark.parametrize("again", [(("clerk", "We start over from the beginning."),), BEGINNING])
def test_a_restart_that_somebody_else_asked_for_is_none(asker, text, found, again):
    run = RunBuilder("Add up.")
    for agent, said in (*BEGINNING, ("clerk", "Invoice 1."), (asker, text), *again):
        run.says(agent, said)
    assert bool(restarted(run.build())) is found


@pytest.mark.parametrize(
    ("task", "found"), [("Start over after a miss.", False), ("Add up.", True)]
)
def test_a_task_may_ask_for_a_restart(task, found):
    run = RunBuilder(task).says("clerk", "Invoice 1.").says("clerk", "I will start over.")
    assert bool(restarted(run.build())) is found
