"""Fixes that hold the right answer are refused, in any notation; fixes from what the run knew are not."""

from __future__ import annotations

import pytest

from mast_trace.messages import Message
from mast_trace.trajectory import Invocation, Step, StepKind, Trajectory
from mast_trace_judge.replay.leaks import known_before, leaked

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
