"""Mode 2.6: agents' statements that contradict tool results or calls."""

import pytest
from judge.builders import RunBuilder

from mast_trace_judge.local.figures import figures
from mast_trace_judge.local.rules.mismatch import _is_new, claimed_call, misstated_result
from mast_trace_judge.verdict import Evidence


@pytest.mark.parametrize(
    ("task", "result", "text"),
    [
        ("How far is it?", "59", "It is 95."),
        ("What does it cost?", "59 EUR", "It costs 95 EUR."),
        ("How far is it?", "59 km", "It is 95 km."),
        ("How far is it?", '{"distance_km": 59}', "It is **95** km away."),
        ("How many are there?", "59 pieces", "There are 95 pieces."),
        ("How warm is it?", "15 \u00b0C", "It is 59 \u00b0C."),
        ("Wie weit ist es?", "59", "Es sind 95."),
        ("How many are there?", "pieces: 59", "There are 95 pieces."),
    ],
)
def test_a_number_is_in_no_other_unit_where_none_is_named(task, result, text):
    """59 miles are 95 kilometres, but nothing says that one of them is meant."""
    run = RunBuilder(task, outcome="failure").calls("agent", "look_up", {"of": "x"}, result)
    (found,) = misstated_result(run.says("agent", text).build())
    assert found.code == "2.6"
    assert "59" in found.reason or "15" in found.reason


@pytest.mark.parametrize(
    ("task", "result", "text"),
    [
        ("How far is it?", "59 miles", "It is 95 km."),
        ("How far is it in km?", "59", "It is 95."),
        ("How far is it?", "59", "It is 95 km."),
        ("How far is it?", '{"distance_miles": 59}', "It is 95."),
        ("How far is it?", "59 Meilen", "Es sind 95 Kilometer."),
        ("How far is it?", "59 \u82f1\u91cc", "\u8ddd\u79bb95\u516c\u91cc"),
        ("How warm is it?", "15 \u00b0C", "It is 59 \u00b0F."),
        ("How warm is it?", "15", "It is 59 degrees Fahrenheit."),
        ("How long does it take?", "120", "It takes 2 hours."),
        ("How warm is it?", "72", "The tool returned 22.2 degrees Celsius."),
        ("How far is it?", "26.2", "The tool returned 42.2 km."),
        ("Three nights, please.", "118 EUR", "Three nights cost 354 EUR."),
        ("The fee is 12 EUR.", "118 EUR", "With the fee of 12 EUR that is 130 EUR."),
        ("What is it?", "3.14159", "The value is about 3.14."),
        ("What is it?", "1250000", "It is 1.25 million."),
        ("What is it?", "0.4", "That is 40 percent."),
        ("What is it?", "118 EUR", "A room is 118 EUR, and the budget of 1999 EUR is not used up."),
        ("What is it?", "118 EUR", "A room is available."),
        ("What is it?", "rooms: 118, 181, 99 and 240", "The second one costs 811 EUR."),
        ("What is it?", "no rooms", "I found 27 rooms."),
        ("What is it?", "-16.63", "You get $16.63 back."),
        ("What is it?", "16.63", "The difference is -$16.63."),
        ("What is it?", "47.9", "Das macht 47,90 Euro."),
        ("What is it?", "47,90", "That is 47.90 euros."),
        ("What is it?", "1.0847", "Kurs: 1,0847."),
        ("What is it?", "1234567.5", "Es sind 1.234.567,50 Euro."),
        ("What is it?", "1,234,567.5", "C'est 1\u202f234\u202f567,50 euros."),
        ("What is it?", "1234567", "It is 12,34,567 rupees."),
        ("What is it?", "1000", "The tool returned 1,000, so the next one is 1,001."),
        ("From 4 February to 28 May 2031.", "994", "Filed for 16.1 weeks."),
    ],
)
def test_the_same_number_and_what_follows_from_it_are_right(task, result, text):
    """In a unit of message, task or result; as a sum, product or round number; written another way."""
    run = RunBuilder(task, outcome="failure").calls("agent", "look_up", {"of": "x"}, result)
    assert misstated_result(run.says("agent", text).build()) == []


def test_another_agents_result_is_not_compared():
    run = RunBuilder().calls("a", "count_rows", {}, "4711").says("b", "We have 4171 members.")
    assert misstated_result(run.build()) == []


@pytest.mark.parametrize(
    "text",
    [
        "I called search and found nothing.",
        "I ran pytest through the shell tool.",
        "I ran verify_total on it.",
        "I will call check_stock next.",
        "I used the results of my colleague.",
        "I ran a quick comparison.",
    ],
)
def test_true_claims_and_plain_words_are_no_mismatch(text):
    run = RunBuilder().calls("agent", "search", {"q": "x"}, "nothing")
    run.calls("agent", "shell", {"command": "python verify_total.py"}, "fine")
    run.calls("agent", "shell", {"command": "pytest -q"}, "3 passed")
    run.says("agent", text).calls("agent", "check_stock", {}, "1")
    assert claimed_call(run.build()) == []


@pytest.mark.parametrize(
    ("sentence", "evidence"),
    [
        ("The hotel search returned 5121.", Evidence.EXACT),
        ("The tax search returned 5121.", Evidence.EXACT),
        (f"The hotel{' of the town' * 20} is this: the search returned 5121.", Evidence.EXACT),
        ("The hotel is nice.\nThe search returned 5121.", Evidence.HEURISTIC),
        ("The price search returned 5121.", Evidence.HEURISTIC),  # both tools are about prices
        ("The search returned 5121.", Evidence.HEURISTIC),
        ("The flight search returned 5121.", Evidence.HEURISTIC),
        ("By id the search returned 5121.", Evidence.HEURISTIC),  # too short to name a tool
    ],
)
def test_of_two_results_the_sentence_must_name_the_one_that_it_misreports(sentence, evidence):
    """The sentence names the tool by a word of its name that the other tool's name lacks."""
    run = RunBuilder("Three nights in Lisbon, please.")
    run.calls("agent", "flight_price", {"to": "Lisbon"}, "198")
    run.calls("agent", "hotel_price_tax_by_id", {"city": "Lisbon"}, "5211")
    (found,) = misstated_result(run.says("agent", f"The flight is 198 EUR. {sentence}").build())
    assert (found.evidence, found.steps) == (evidence, (1, 2))


@pytest.mark.parametrize(
    ("text", "quotes"),
    [
        ("Well. I ran frobnicate() on it. Fine.", ("I ran frobnicate() on it.",)),
        ("I have just used the frobnicate tool.", ("I have just used the frobnicate tool.",)),
        ("I called the frobnicate function.", ("I called the frobnicate function.",)),
        ("I ran make_report.", ("I ran make_report.",)),
        ("I ran frobnicate.", ()),
        ("I ran make_plan.", ()),
        ("I called search. I ran make_report.", ("I ran make_report.",)),
        ("I ran a test. I ran make_report.", ("I ran make_report.",)),
    ],
)
def test_what_is_taken_for_the_name_of_a_tool(text, quotes):
    """A tool's name has brackets, an underscore or the word tool with it, and is not in the task."""
    run = RunBuilder("Run make_plan.").asks().calls("agent", "search", {"q": "x"}, "nothing")
    found = claimed_call(run.says("agent", text).build())
    assert [each.quotes for each in found] == ([quotes] if quotes else [])
    assert all((each.probability, each.evidence) == (0.5, Evidence.HEURISTIC) for each in found)


CLAIM = "I called `check_stock` and all is there."


@pytest.mark.parametrize(
    ("run", "probability"),
    [
        (RunBuilder().says("agent", CLAIM), None),
        (RunBuilder().says("agent", CLAIM).calls("b", "check_stock", {}, "1"), 0.85),
        (RunBuilder(spans=False).says("agent", CLAIM).calls("b", "check_stock", {}, "1"), 0.5),
        (
            RunBuilder()
            .says("b", "So far.", tool="check_stock")
            .says("agent", CLAIM)
            .calls("b", "check_stock", {}, "1"),
            None,
        ),
        (RunBuilder().says("agent", CLAIM, tool="check_stock"), 0.85),
    ],
    ids=["no tools", "later", "transcript", "used before", "used with it"],
)
def test_a_claim_is_held_against_when_the_tool_was_used(run, probability):
    """A claim is false if the tool's first call comes later; exact if spans show it."""
    found = claimed_call(run.build())
    assert [each.probability for each in found] == ([probability] if probability else [])


@pytest.mark.parametrize(
    ("result", "text", "probability"),
    [
        ("4711", "The tool returned 5120.", 0.9),
        ("4711", "There are 5120.", 0.45),
        ("4711", "There are 4171.", 0.85),
        ("4711".ljust(120, "."), "There are 5120.", 0.45),
        ("4711".ljust(121, "."), "There are 5120.", None),
        ("4711".ljust(121, "."), "The tool returned 4171.", 0.85),
        ("7 rows", "There are 5120.", None),
        ("17 rows", "There are 5120.", 0.45),
        ("4711", "There are 5.", None),
        ("4711", "There are 880.", None),
        ("4711 of 4711", "There are 4171.", 0.85),
        ("4711 of 5300", "There are 4171.", None),
        ("exitcode 4711", "The call gave 5120.", 0.9),
    ],
)
def test_how_surely_a_number_misstates_a_result(result, text, probability):
    """The probability depends on the kind: explicit report, slip of a digit, or another number."""
    run = RunBuilder(outcome="failure").asks()
    run.calls("agent", "count_rows", {"limit": 880}, result)
    found = misstated_result(run.says("agent", text).build())
    assert [each.probability for each in found] == ([probability] if probability else [])


def test_another_number_without_a_word_of_the_tool_counts_in_failed_runs_only():
    """Another number may be unrelated to the tool, so it counts only in runs that failed."""

    def found(text, **attributes):
        run = RunBuilder(**attributes).asks().calls("agent", "count_rows", {}, "4711")
        return [each.probability for each in misstated_result(run.says("agent", text).build())]

    assert found("There are 5120.") == []
    assert found("There are 5120.", outcome="failure") == [0.45]
    assert found("There are 4171.") == [0.85]
    assert found("The tool returned 5120.") == [0.9]


def test_without_spans_no_mismatch_is_exact():
    run = RunBuilder(spans=False, outcome="failure").calls("agent", "count_rows", {}, "4711")
    (found,) = misstated_result(run.says("agent", "The tool returned 5120.").build())
    assert found.evidence is Evidence.HEURISTIC


def test_each_agent_is_held_against_its_own_results():
    """An agent's first message after its results is compared with them; failed calls have no result."""
    run = RunBuilder().asks().calls("a", "count_rows", {}, "4711").says("a", "We have 4171.")
    run.calls("b", "count_pages", {}, "6833").says("b", "There are 6383.").says("a", "So 4117.")
    run.calls("c", "count_words", {}, "7919", error="Timeout").says("c", "There are 7991.")
    found = misstated_result(run.build())
    assert [each.steps for each in found] == [(1, 2), (3, 4)]
    assert found[0].reason == "a states 4171 where count_rows returned 4711."


def test_each_result_of_a_turn_is_looked_at():
    """The third result is misstated, though the first is repeated correctly and the second left out."""
    run = RunBuilder().calls("a", "count_rows", {}, "4711").calls("a", "count_words", {}, "59004")
    run.calls("a", "count_pages", {}, "6833").says("a", "There are 4711 and 6383.")
    (found,) = misstated_result(run.build())
    assert found.steps == (2, 3)


@pytest.mark.parametrize(
    ("text", "slips"),
    [
        ("There are 6383.", 0),
        ("There are 5120.", 0),
        ("There are 4711 and 6383.", 1),
        ("There are 4711, and 6933 with the letter of 100.", 0),
        ("There are 4711, and 6933.", 1),
    ],
    ids=[
        *("repeats none", "no slip", "repeats one"),
        *("larger by what is known", "larger by what is not"),
    ],
)
def test_what_may_be_a_sum_is_no_slip(text, slips):
    """A message that repeats none of several results may give their sum."""
    run = RunBuilder().calls("a", "count_rows", {}, "4711").calls("a", "count_pages", {}, "6833")
    if "letter" in text:
        run.calls("a", "count_letters", {}, "100")
    assert len(misstated_result(run.says("a", text).build())) == slips


@pytest.mark.parametrize(
    "text",
    ["In 2019 there were fewer. The tool returned 5120.", "We have 4171. The tool returned 5120."],
)
def test_a_number_given_as_the_tools_answer_goes_before_others(text):
    """An explicit report takes precedence over slips and other numbers of the message."""
    run = RunBuilder().calls("agent", "count_rows", {}, "4711").says("agent", text)
    (found,) = misstated_result(run.build())
    assert found.reason == "agent states 5120 where count_rows returned 4711."


def test_the_quote_holds_the_number_however_long_the_result_is():
    run = RunBuilder().calls("agent", "count_rows", {}, "of the table " * 30 + "4711")
    (found,) = misstated_result(run.says("agent", "We have 4171.").build())
    assert "4711" in found.quotes[0]


@pytest.mark.parametrize(("known", "found"), [(399, True), (400, False)])
def test_where_very_many_numbers_are_known_nothing_is_new(known, found):
    """Numbers are compared up to 400 known ones, the result's included."""
    task = " ".join(str(1_000_000 + number) for number in range(known))
    run = RunBuilder(task).calls("agent", "count_rows", {}, "4711")
    assert bool(misstated_result(run.says("agent", "There are 4171.").build())) is found


@pytest.mark.parametrize(
    ("literal", "known", "new"),
    [("7", set(), False), ("+7", set(), False), ("-7", set(), False), ("12", set(), True)],
)
def test_numbers_of_two_digits_can_be_new(literal, known, new):
    """A number with a sign and one digit is too short to be new."""
    (figure,) = figures(literal)
    assert _is_new(figure, known, figure) is new


def test_a_unit_of_some_other_number_excuses_nothing():
    """A number that equals another known number in some unit still misstates the result."""
    run = RunBuilder(" ".join(str(1000 + 97 * number) for number in range(40))).asks()
    run.calls("agent", "count_rows", {}, "471.1")
    (found,) = misstated_result(run.says("agent", "The tool returned 613.7.").build())
    assert (found.evidence, found.steps) == (Evidence.EXACT, (1, 2))
