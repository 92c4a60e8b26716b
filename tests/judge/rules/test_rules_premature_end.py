"""Mode 3.1: runs that end too early."""

import dataclasses

import pytest
from judge.builders import RunBuilder

from mast_trace_judge.local.rules import find_modes
from mast_trace_judge.local.rules.premature_end import (
    ended_with_error,
    ended_without_answer,
    gave_up,
    left_items_open,
    left_pages_unread,
    unkept_promise,
)
from mast_trace_judge.verdict import Evidence

PAGE = '{"page": %d, "pages": 3, "bills": [1]}'


def test_an_error_that_was_repaired_is_no_premature_end():
    """Only the very last step counts."""
    run = RunBuilder().calls("a", "search", {}, error="Timeout").says("a", "It is 4.")
    assert ended_with_error(run.build()) == []


@pytest.mark.parametrize(
    "attributes", [{"outcome": "success"}, {"termination_reason": "interrupted"}]
)
def test_success_and_a_persons_stop_are_no_premature_end(attributes):
    """A run that a person stopped, or that reached its goal, ended when it should."""
    run = RunBuilder(error="Cancelled", open_items=("letter",), **attributes)
    run.calls("a", "search", {}, "text")
    trajectory = run.build()
    assert not ended_with_error(trajectory)
    assert not left_items_open(trajectory)
    assert not ended_without_answer(trajectory)


def test_ending_on_a_failed_call_is_exact_and_on_a_result_heuristic():
    """A result may be the answer; a failure is none."""
    failed = RunBuilder().says("a", "Look.").calls("a", "search", {}, error="Timeout").build()
    plain = RunBuilder().says("a", "Look.").calls("a", "search", {}, "three hits").build()
    assert ended_without_answer(failed)[0].evidence is Evidence.EXACT
    assert ended_without_answer(plain)[0].evidence is Evidence.HEURISTIC


@pytest.mark.parametrize("tool", ["submit_answer", "finish", "send_mail", "saveReport"])
def test_ending_with_a_tool_that_delivers_is_fine(tool):
    """Some agents answer through a tool."""
    run = RunBuilder().says("a", "Look.").calls("a", tool, {"text": "4"}, "accepted")
    assert ended_without_answer(run.build()) == []


def test_giving_up_in_the_last_message_is_heuristic():
    """The quote is what says so."""
    run = RunBuilder().says("a", "I was unable to find the second invoice.")
    (found,) = gave_up(run.build())
    assert found.quotes == ("I was unable to find the second invoice.",)
    assert gave_up(run.says("a", "Here it is: invoice 2.").build()) == []


@pytest.mark.parametrize(
    "later",
    ["The hotel costs 118 EUR.", "Let me check the sum: 198 + 118 = 316. " + "It is right. " * 20],
)
def test_announced_work_that_follows_is_fine(later):
    """In a later message, or in the same one."""
    run = RunBuilder().says("researcher", "I will look up the hotel next.")
    assert unkept_promise(run.says("researcher", later).build()) == []


def test_read_pages_and_large_listings_are_fine():
    """All three pages read; of a thousand, nobody needs all."""
    run = RunBuilder(outcome="failure").calls("a", "bills", {"page": 2}, PAGE % 2)
    run.calls("a", "bills", {"page": 3}, PAGE % 3)
    run.calls("a", "hits", {"page": 1}, '{"page": 1, "pages": 1000}')
    run.calls("a", "other", {}, "{not json")
    assert left_pages_unread(run.build()) == []


@pytest.mark.parametrize(
    ("error", "told"),
    [("First.\nSecond.", "First.."), ("", "unknown."), ("x" * 201, "x" * 200 + ".")],
    ids=["lines", "nothing", "long"],
)
def test_the_reason_tells_the_runs_own_error(error, told):
    run = RunBuilder(error=error).says("a", "Look.").calls("a", "search", {}, error="Timeout")
    (found,) = ended_with_error(run.build())
    assert (found.code, found.evidence) == ("3.1", Evidence.EXACT)
    assert (found.steps, found.reason) == ((1,), f"The run ended with an error: {told}")


def test_five_open_items_are_listed():
    run = RunBuilder(open_items=tuple("abcdef")).says("a", "One.").says("a", "Two.")
    (found,) = left_items_open(run.build())
    assert found.reason == "6 planned items were open at the end: a; b; c; d; e."
    assert (found.evidence, found.steps) == (Evidence.EXACT, (1,))


ENDS = {
    "error": RunBuilder().says("a", "Look.").calls("a", "search", {}, error="Timeout"),
    "items": RunBuilder(open_items=("b",)).says("a", "One."),
    "result": RunBuilder().says("a", "Look.").calls("a", "search", {}, "7"),
    "gave up": RunBuilder().says("a", "I was unable to find the report."),
    "promise": RunBuilder().calls("a", "search", {}, "7").says("a", "I will check it."),
    "pages": RunBuilder().calls("a", "search", {}, '{"has_more": true}').says("a", "Here: 7."),
}


@pytest.mark.parametrize("run", ENDS.values(), ids=ENDS.keys())
def test_a_run_of_which_no_end_was_seen_did_not_end_too_early(run):
    """A run without a known end was killed, waits or goes on: its last step is not its end."""
    whole = dataclasses.replace(run.build(), outcome="failure")
    assert "3.1" in {mode.code for mode in find_modes(whole)}
    open_run = dataclasses.replace(whole, finished=False)
    assert {mode.code for mode in find_modes(open_run)} & {"3.1", "3.2"} == set()


def test_a_run_without_steps_ends_on_nothing():
    assert ended_without_answer(RunBuilder().build()) == []


def test_a_tool_without_a_name_is_a_tool():
    (found,) = ended_without_answer(RunBuilder().calls("a", "", {}, "7").build())
    assert found.reason == "The run ends on the result of a tool, and no agent concludes."


@pytest.mark.parametrize("rule", [gave_up, unkept_promise, left_pages_unread])
def test_words_say_nothing_against_a_success(rule):
    """The run reached its goal without what is missing."""
    run = RunBuilder(outcome="success").calls("a", "bills", {}, PAGE % 1)
    run.says("a", "I was unable to find the rest. I will check it.")
    assert rule(run.build()) == []


@pytest.mark.parametrize(
    ("text", "quotes"),
    [
        ("Unable to find it.", ["Unable to find it."]),
        ("It is read. I was unable to find it. Sorry.", ["I was unable to find it."]),
        (
            "..." + "unable to find it".ljust(1500, "."),
            ["..." + "unable to find it".ljust(157, ".")],
        ),
        ("..." + "unable to find it".ljust(1501, "."), []),
    ],
    ids=["at once", "a sentence", "1500 characters", "1501 characters"],
)
def test_giving_up_counts_in_the_last_1500_characters(text, quotes):
    """The sentence that says so is quoted."""
    found = gave_up(RunBuilder().says("a", text).build())
    assert [each.quotes[0] for each in found] == quotes


@pytest.mark.parametrize(("length", "found"), [(200, True), (201, False), (0, True)])
def test_announcing_counts_in_the_last_200_characters(length, found):
    """Before, the work may be done in the same breath."""
    text = ("" if not length else "...") + "let me check it".ljust(length, "-")
    run = RunBuilder().says("a", text).calls("b", "search", {}, "7")
    assert [each.steps for each in unkept_promise(run.build())] == ([(0, 1)] if found else [])


MORE = '{"has_more": true}'


@pytest.mark.parametrize(
    ("result", "outcome", "probability"),
    [
        (PAGE % 1, "", 0.4),
        (PAGE % 1, "failure", 0.6),
        (PAGE % 0, "", None),
        ('{"page": 1, "pages": 20}', "", 0.4),
        ('{"page": 1, "pages": 21}', "", None),
        ('{"page": 1}', "", None),
        ('{"pages": 3}', "", None),
        (MORE, "", 0.4),
        (" " + MORE, "", None),
        (MORE.ljust(200_000), "", 0.4),
        (MORE.ljust(200_001), "", None),
        (PAGE % 3, "", None),
    ],
    ids=[
        *("first", "failure", "page 0", "20 pages", "21 pages", "no number", "no page", "flag"),
        *("no JSON", "long", "too long", "last"),
    ],
)
def test_what_says_that_there_is_more_to_read(result, outcome, probability):
    """A page below the number of pages, up to 20 of them, or a flag."""
    run = RunBuilder(outcome=outcome).calls("a", "bills", {}, result).says("a", MORE)
    found = [each.probability for each in left_pages_unread(run.build())]
    assert found == ([probability] if probability else [])
