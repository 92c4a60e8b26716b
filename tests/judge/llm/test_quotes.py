"""Quotes are shown only where they stand in the run, and as they stand there."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from judge.builders import RunBuilder

from mast_trace_judge.llm.quotes import FoldedText, QuoteCheck

STEPS = (
    "The meeting takes 3.5 hours, from 9 to 12:30.",
    "I have “booked”   the room:\n**Blue Hall**, 35 seats, -5 °C outside.",
    "Der Größenunterschied beträgt 10 %.",
    "会议在三点开始,地点是蓝厅。",
    "I have booked the room: Blue Hall.",
    "1,250.00 EUR are due; the other amount is 250.00 EUR.",
)


@pytest.fixture
def run():
    """A run of six steps."""
    builder = RunBuilder("Book a room.")
    for text in STEPS:
        builder.says("clerk", text, to="boss")
    return builder.build()


def check(run, quote, *steps):
    return QuoteCheck(run).verify([quote], steps)


@pytest.mark.parametrize(
    ("quote", "step", "passage"),
    [
        ("takes 3.5 hours", 0, "takes 3.5 hours"),
        ('"TAKES 3.5 HOURS"', 0, "takes 3.5 hours"),
        ('I have "booked" the room: Blue Hall', 1, "I have “booked”   the room:\n**Blue Hall"),
        ("-5 °c outside", 1, "-5 °C outside"),
        ("grössenunterschied", 2, "Größenunterschied"),
        ("三点开始", 3, "三点开始"),
        ("1,250.00", 5, "1,250.00"),
    ],
)
def test_finds_what_is_there(run, quote, step, passage):
    assert check(run, quote, step) == [(step, passage)]
    assert passage in STEPS[step]


@pytest.mark.parametrize(
    ("quote", "step"),
    [
        ("takes 35 hours", 0),
        ("takes 3 hours", 0),
        ("5 hours", 0),
        ("5 °C outside", 1),
        ("35 seat", 1),
        ("50.00 EUR", 5),
        ("the room is taken", 1),
        ("", 0),
        ("...", 0),
        ("***", 0),
    ],
)
def test_does_not_find_what_is_not_there(run, quote, step):
    assert check(run, quote, step) == []


@pytest.mark.parametrize(
    ("quote", "text", "passage"),
    [
        ("f(a) == g(b)", "if f(a) != g(b):", ""),
        ("x < 5", "while x > 5:", ""),
        ("x <= 5", "while x < 5:", ""),
        ("F(A)==G(B)", "f(a) != g(b), but f(a) == g(b)", "f(a) == g(b"),
        ("x<5", "while x < 5:", "x < 5"),
        ("x >= 5", "while x ≥ 5:", "x ≥ 5"),
        ("a === b", "so A == b", "A == b"),
        ("one step -> two steps", "One step → two steps", "One step → two steps"),
        ("first line second", "> first line\n> second", "first line\n> second"),
        ("a == g(b)", "a != g(b); a == g(b)", "a == g(b)"),
    ],
)
def test_comparisons_are_no_punctuation(quote, text, passage):
    run = RunBuilder("x").says("clerk", text).build()
    assert check(run, quote, 0) == ([(0, passage)] if passage else [])


@pytest.mark.parametrize(
    "quote",
    [
        "hours, from 9 to 12:30.",
        "**Blue Hall**, 35",
        "10 %.",
        "the room: Blue Hall.",
        "(a) ... (b)",
        "x = {y};",
    ],
)
def test_an_exact_quote_is_returned_sign_for_sign(run, quote):
    """Also where its signs are those of an ellipsis, and where another text has the same words."""
    other = (
        RunBuilder("x")
        .calls("clerk", "run", {"text": "x y, (a) (b)"}, "(a) ... (b) x = {y};")
        .build()
    )
    for trajectory in (run, other):
        for step in trajectory.steps:
            if quote in step.text:
                assert check(trajectory, quote, step.index) == [(step.index, quote)]
                return
    raise AssertionError(quote)


def test_the_quote_itself_comes_before_the_same_words_elsewhere():
    said = ("The total is 12, they say.", "Nothing.", "The total: is 12!")
    run = RunBuilder("x").says("a", said[0]).says("b", said[1]).says("c", said[2]).build()
    assert check(run, "The total: is 12!", 0, 1, 2) == [(2, "The total: is 12!")]


def test_parts_around_an_ellipsis_follow_each_other(run):
    assert check(run, "The meeting ... 3.5 hours […] 12:30", 0) == [
        (0, "The meeting"),
        (0, "3.5 hours"),
        (0, "12:30"),
    ]
    assert check(run, "3.5 hours ... The meeting", 0) == []


def test_a_quote_is_moved_to_the_only_step_that_has_it(run):
    verifier = QuoteCheck(run)
    assert verifier.verify(["The meeting takes 3.5 hours"], [5]) == [
        (0, "The meeting takes 3.5 hours")
    ]
    assert verifier.verify(["I have booked the room"], [0]) == []
    assert verifier.verify(["9"], [5]) == []


def test_arguments_and_errors_may_be_quoted():
    asked = {"room": "Blue Hall"}
    run = RunBuilder("x").calls("clerk", "book", asked, error="room is taken").build()
    assert check(run, '"room": "Blue Hall"', 0) == [(0, '"room": "Blue Hall"')]
    assert check(run, "room is taken", 0) == [(0, "room is taken")]


@given(st.text(max_size=200), st.integers(0, 200), st.integers(1, 60))
def test_every_whole_word_passage_is_found_as_it_stands(text, start, length):
    quote = text[start : start + length]
    run = RunBuilder("x").says("clerk", text).build()
    for step, passage in QuoteCheck(run).verify([quote], [0]):
        assert step == 0
        assert passage
        assert passage in text


@given(st.text(max_size=300))
def test_folding_keeps_the_places(text):
    folded = FoldedText.of(text)
    assert len(folded.folded) == len(folded.places)
    assert list(folded.places) == sorted(folded.places)
    assert all(0 <= place < len(text) for place in folded.places)
