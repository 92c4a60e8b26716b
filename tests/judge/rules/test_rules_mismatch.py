"""Mode 2.6: words that differ from deeds."""

import pytest
from judge.builders import RunBuilder

from mast_trace_judge.rules.mismatch import claimed_call, misstated_result
from mast_trace_judge.verdict import Evidence


def test_exchanged_digits_of_a_result_are_found():
    """The tool said 118, the agent says 181."""
    run = RunBuilder("Three nights in Lisbon, please.")
    run.calls("agent", "flight_price", {"to": "Lisbon"}, "Lisbon and back: 198 EUR per person")
    run.calls(
        "agent", "hotel_price", {"city": "Lisbon"}, "Double room in Lisbon: 118 EUR per night"
    )
    run.says("agent", "The flight is 198 EUR. A room costs 181 EUR a night.")
    (found,) = misstated_result(run.build())
    assert (found.code, found.steps) == ("2.6", (1, 2))
    assert "118" in found.quotes[0]
    assert "181" in found.quotes[1]


def test_a_number_given_as_the_tools_answer_is_exact():
    """The agent reports the result in so many words, and reports it wrongly."""
    run = RunBuilder().calls("agent", "count_rows", {"table": "t"}, "4711")
    run.says("agent", "The tool returned 5120.")
    (found,) = misstated_result(run.build())
    assert (found.evidence, found.quotes) == (Evidence.EXACT, ("4711", "The tool returned 5120."))


@pytest.mark.parametrize(
    ("result", "text"),
    [
        ("118 EUR", "Three nights cost 354 EUR."),
        ("118 EUR", "With the fee of 12 EUR that is 130 EUR."),
        ("3.14159", "The value is about 3.14."),
        ("1250000", "It is 1.25 million."),
        ("0.4", "That is 40 percent."),
        ("118 EUR", "The room costs 118 EUR, and the budget of 1999 EUR is not used up."),
        ("118 EUR", "A room is available."),
        ("rooms: 118, 181, 99 and 240", "The second one costs 811 EUR."),
        ("no rooms", "I found 27 rooms."),
    ],
)
def test_what_follows_from_the_result_is_no_mismatch(result, text):
    """Sums, products, rounding and other units are sound; listings cannot be told."""
    run = RunBuilder("Three nights, fee 12 EUR.").calls("agent", "room_price", {"n": 1}, result)
    assert misstated_result(run.says("agent", text).build()) == []


def test_another_agents_result_is_not_compared():
    """What an agent says after somebody else's tool run may be of something else."""
    run = RunBuilder().calls("a", "count_rows", {}, "4711").says("b", "We have 4171 members.")
    assert misstated_result(run.build()) == []


def test_a_claimed_call_of_a_tool_that_runs_only_later_is_exact():
    """The run knows the tool, and nobody had called it."""
    run = RunBuilder().says("agent", "I called `check_stock` and all is there.")
    run.calls("other", "check_stock", {"item": 3}, "none left")
    (found,) = claimed_call(run.build())
    assert (found.evidence, found.steps) == (Evidence.EXACT, (0,))
    assert "check_stock" in found.quotes[0]


def test_a_claimed_call_of_an_unknown_tool_is_heuristic():
    """The name only looks like a tool's."""
    run = RunBuilder().calls("agent", "search", {"q": "x"}, "nothing")
    (found,) = claimed_call(run.says("agent", "I ran verify_total() on it.").build())
    assert found.evidence is Evidence.HEURISTIC


@pytest.mark.parametrize(
    "text",
    [
        "I called search and found nothing.",
        "I ran pytest through the shell tool.",
        "I will call check_stock next.",
        "I used the results of my colleague.",
        "I ran a quick comparison.",
    ],
)
def test_true_claims_and_plain_words_are_no_mismatch(text):
    """Called tools, programs in arguments, intentions and everyday verbs."""
    run = RunBuilder().calls("agent", "search", {"q": "x"}, "nothing")
    run.calls("agent", "shell", {"command": "pytest -q"}, "3 passed")
    run.says("agent", text).calls("agent", "check_stock", {}, "1")
    assert claimed_call(run.build()) == []


@pytest.mark.parametrize(
    ("sentence", "evidence"),
    [
        ("The hotel search returned 5121.", Evidence.EXACT),
        ("The price search returned 5121.", Evidence.HEURISTIC),  # both tools are about prices
        ("The search returned 5121.", Evidence.HEURISTIC),
        ("The flight search returned 5121.", Evidence.HEURISTIC),
        ("By id the search returned 5121.", Evidence.HEURISTIC),  # too short to name a tool
    ],
)
def test_of_two_results_the_sentence_must_name_the_one_that_it_misreports(sentence, evidence):
    """By a word of its tool's name that the other tool does not have."""
    run = RunBuilder("Three nights in Lisbon, please.")
    run.calls("agent", "flight_price", {"to": "Lisbon"}, "198")
    run.calls("agent", "hotel_price_by_id", {"city": "Lisbon"}, "5211")
    (found,) = misstated_result(run.says("agent", f"The flight is 198 EUR. {sentence}").build())
    assert (found.evidence, found.steps) == (evidence, (1, 2))
