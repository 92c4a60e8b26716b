"""Corrections in their order, and the ones that are refused: empty, unchanged, or with the right answer."""

from __future__ import annotations

import sys

import pytest

from mast_trace.exceptions import ConfigurationError
from mast_trace.trajectory import Step, StepKind, Trajectory
from mast_trace_judge.replay.arms import Fix
from mast_trace_judge.replay.candidates import point_of
from mast_trace_judge.replay.fixes import Sources, planned_fixes
from mast_trace_judge.replay.oracle import Oracle
from mast_trace_judge.replay.points import Point

POINTS = (
    Point(1, "researcher", "a", "The room costs 181 EUR."),
    Point(3, "planner", "b", "Together 939 EUR."),
)
RUN = Trajectory(
    "t",
    (
        Step(0, StepKind.MESSAGE, "user", "What does it cost?"),
        Step(1, StepKind.MESSAGE, "researcher", "The room costs 181 EUR."),
        Step(2, StepKind.TOOL, "planner", "118 EUR"),
        Step(3, StepKind.MESSAGE, "planner", "Together 939 EUR."),
    ),
    task="Rooms cost 118 EUR.",
)


def test_sources_come_in_their_order() -> None:
    fixes, refused = planned_fixes(
        RUN,
        POINTS,
        Sources(
            {1: "118 EUR it is."},
            stronger_model="big",
            judge={1: "Write 118."},
            reference={1: "A room is 118 EUR."},
        ),
    )
    assert fixes[1] == (
        Fix("person", "118 EUR it is."),
        Fix("resample"),
        Fix("stronger model", model="big"),
        Fix("judge", "Write 118."),
        Fix("reference", "A room is 118 EUR."),
    )
    assert fixes[3] == (Fix("resample"), Fix("stronger model", model="big"))
    assert refused == ()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (" The room costs\n181 EUR. ", "recorded answer"),
        ("  ", "empty"),
        ("The trip costs 750 EUR.", "'750'"),
        ("The trip costs 750.0 EUR.", "'750.0'"),
        ("right", "oracle takes its text for the right answer"),
        ("crash", "could not judge"),
    ],
)
def test_refused(text: str, reason: str) -> None:
    """The reason of the outcome holds the right answer, which a correction may not hold."""
    code = "import sys; a = sys.stdin.read(); sys.exit(7 if a == 'crash' else a != 'right')"
    oracle = Oracle((sys.executable, "-c", code))
    sources = Sources({1: text}, answers=["the trip costs 750 EUR"])
    fixes, refused = planned_fixes(RUN, POINTS, sources, oracle)
    assert fixes[1] == (Fix("resample"),)
    assert reason in refused[0].reason
    assert (refused[0].step, refused[0].source) == (1, "person")


def test_the_last_answer_may_be_right_by_itself() -> None:
    """Its correction is the final answer, as far as the run knew it."""
    oracle = Oracle((sys.executable, "-c", "import sys; sys.exit('118' not in sys.stdin.read())"))
    fixes, _ = planned_fixes(RUN, POINTS, Sources({3: "118 EUR"}), oracle)
    assert fixes[3][0] == Fix("person", "118 EUR")


def test_a_step_without_a_model_answer_cannot_be_corrected() -> None:
    with pytest.raises(ConfigurationError, match="steps that can: 1, 3"):
        planned_fixes(RUN, POINTS, Sources({2: "x"}))
    _, refused = planned_fixes(RUN, POINTS, Sources({}, judge={2: "x"}))
    assert refused[0].source == "judge"


@pytest.mark.parametrize(
    ("step", "agent", "found"), [(1, "x", 1), (2, "planner", 1), (3, "planner", 3), (9, "", 3)]
)
def test_a_step_belongs_to_the_answer_before_it(step: int, agent: str, found: int) -> None:
    point = point_of(step, agent, POINTS)
    assert point is not None
    assert point.step == found


def test_nothing_comes_before_the_first_answer() -> None:
    assert point_of(0, "user", POINTS) is None
