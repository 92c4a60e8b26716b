"""Fixes that hold the right answer are refused, in any notation; fixes from what the run knew are not."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from mast_trace.messages import Message
from mast_trace.trajectory import Invocation, Step, StepKind, Trajectory
from mast_trace_judge.local.addressing.recognition import clean
from mast_trace_lab.confirm.leaks import known_before, leaked

if TYPE_CHECKING:
    from collections.abc import Callable

KNOWN = ("Flights and hotel for two?", "Flight: 198 EUR per person", "Double room: 118 EUR")


@pytest.mark.parametrize(
    ("fix", "answer", "found"),
    [
        ("A room costs 118 EUR.", "The trip costs 750 EUR.", ""),
        ("Say 750 EUR.", "The trip costs 750 EUR.", "750"),
        ("Say 750.00 EUR.", "750", "750.00"),
        ("It is 9.260,75.", "9,260.75 EUR in eight invoices", "9.260,75"),
        ("It is 9260.75.", "9'260.75", "9260.75"),
        ("A room costs 118 EUR.", "118 a night", ""),
        (
            "Choose Hotel Mundial.",
            'It must be "Hotel Mundial" in Lisbon, and nothing else than that, of course.',
            "Hotel Mundial",
        ),
        ("choose   hotel\nMUNDIAL", "It must be \u201cHotel Mundial\u201d", "Hotel Mundial"),
        ("Choose another one.", 'It must be "Hotel Mundial"', ""),
        ("The capital is Canberra.", "Canberra", "Canberra"),
        ("Look at yesterday's list.", "yes", ""),
        ("Yes.", "yes", "yes"),
        ("Flights and hotel together.", "flights", ""),
        ("Look again.", "", ""),
    ],
)
def test_a_fix_may_hold_what_the_run_knew(fix: str, answer: str, found: str) -> None:
    assert leaked(fix, [answer], KNOWN) == found


def _as_call(text: str) -> str:
    """Return an answer that hands a text on by a tool."""
    return json.dumps(
        {"text": "", "tool_calls": [{"name": "submit", "arguments": {"report": {"lines": [text]}}}]}
    )


_ESCAPED = [
    ("Total:\n4711", "4711"),
    ("Total:\t4711", "4711"),
    ('Total:"4711', "4711"),
    ("Total:\b4711", "4711"),
    ("Total:\u00b74711", "4711"),
    ("Total:\uff14\uff17\uff11\uff11", "4711"),
    ("Total:\U0001d7d2\U0001d7d5\U0001d7cf\U0001d7cf", "4711"),
    ("Result:\nParis", "Paris"),
    ("Result:\u00a0Paris", "Paris"),
    ("Result: P\u200baris", "Paris"),
]


@pytest.mark.parametrize(("text", "found"), _ESCAPED)
@pytest.mark.parametrize(
    "form",
    [
        _as_call,
        lambda text: json.dumps({"answer": text}),
        lambda text: json.dumps({text: 1}),
        lambda text: json.dumps([[text]]),
        json.dumps,
        lambda text: _as_call(json.dumps({"report": text})),
        lambda text: _as_call(json.dumps(text)),
        lambda text: f"It is:\n```json\n{json.dumps({'answer': text})}\n```",
        lambda text: f"Answer: {json.dumps(json.dumps({'answer': text}))}",
    ],
)
def test_no_escape_hides_a_right_answer(form: Callable[[str], str], text: str, found: str) -> None:
    """It is found in every form of an answer, and known where the run held it in the same form."""
    answers = ["expected 4711", 'it is "Paris"']
    assert clean(leaked(form(text), answers, KNOWN)) == found
    assert leaked(form(text), answers, [*KNOWN, form(text)]) == ""


@pytest.mark.parametrize("number", ["4711", "4.711e3", "4711.0", "-4711", "471100E-2"])
def test_numbers_of_json_are_read(number: str) -> None:
    fix = f'{{"text": "", "tool_calls": [{{"name": "submit", "arguments": {{"x": [{number}]}}}}]}}'
    assert leaked(fix, ["expected 4711"], KNOWN)
    assert leaked(fix, ["expected 4712"], KNOWN) == ""


@pytest.mark.parametrize("answer", [json.dumps({"total": "a\n4711"}), 'The "total" is "\\n4711"'])
def test_right_answers_are_read_as_json_too(answer: str) -> None:
    assert leaked("It is 4711.", [answer], KNOWN) == "4711"


def test_a_truth_value_in_a_right_answer_gives_nothing_away() -> None:
    answers = [json.dumps({"paid": True, "total": 4711})]
    fix = '{"tool_calls": [{"name": "look", "arguments": {"all": true}}]}'
    assert leaked(fix, answers, KNOWN) == ""


def test_a_path_that_a_run_knew_makes_no_number_known() -> None:
    assert leaked("It is 4711.", ["expected 4711"], ["C:\\n4711"]) == "4711"
    assert leaked("Open C:\\n4711.", ["expected 4711"], ["C:\\n4711"]) == ""


def test_deep_json_is_read() -> None:
    inner = "a\n4711"
    for _ in range(4):
        inner = json.dumps("[" * 90 + json.dumps(inner) + "]" * 90)
    assert leaked(inner, ["expected 4711"], KNOWN) == "4711"


def test_a_long_fix_is_read_to_its_end() -> None:
    """The answer in the middle of a long text is found, too."""
    fix = "look again " * 3000 + "Hotel Mundial " + "look again " * 3000
    assert leaked(fix, ['"Hotel Mundial"'], KNOWN) == "Hotel Mundial"


def test_the_step_itself_and_later_ones_are_not_known() -> None:
    """Known are the task, earlier steps and the inputs of the model call."""
    steps = tuple(
        Step(index, StepKind.MESSAGE, "a", text, arguments=arguments)
        for index, (text, arguments) in enumerate([("one", '{"x": 1}'), ("two", ""), ("three", "")])
    )
    run = Trajectory(
        "t",
        steps,
        (Invocation("model", "a", "s1", "", 0, 1, ("m1",), ("system",)),),
        {"m1": Message("You are a.", "system"), "m2": Message("not shown")},
        task="task",
    )
    assert known_before(run, 1, "s1") == ["task", "one", '{"x": 1}', "You are a."]
