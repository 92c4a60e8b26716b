"""Corrections in their order, and the ones that are refused: empty, unchanged, or with the right answer."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from typing import Any

import pytest

from mast_trace.exceptions import ConfigurationError
from mast_trace.messages import Message
from mast_trace.replay.recording import NotReplayable
from mast_trace.trajectory import Invocation, Step, StepKind, Trajectory
from mast_trace_judge.arms import Fix
from mast_trace_judge.decision_points import decision_points
from mast_trace_lab.confirm.fixes import Sources, planned_fixes
from mast_trace_lab.confirm.judged import point_of
from mast_trace_lab.confirm.preparation import fixes_of
from mast_trace_lab.program.process import Oracle
from mast_trace_lab.program.setup import Setup


def _message(step: int, agent: str, text: str, span: str = "") -> Step:
    return Step(step, StepKind.MESSAGE, agent, text, span_id=span, start=step, end=step)


def _call(agent: str, span: str, time: int, answer: str) -> Invocation:
    shown = ("asked",)
    return Invocation("model", agent, span, "", time, time, shown, ("user",), None, answer)


TEXTS = {
    "asked": Message("What does it cost?", "user"),
    "one": Message("The room costs 181 EUR."),
    "two": Message("Together 939 EUR."),
}
RUN = Trajectory(
    "t",
    (
        _message(0, "user", "What does it cost?"),
        _message(1, "researcher", "The room costs 181 EUR.", "a"),
        Step(2, StepKind.TOOL, "planner", "118 EUR", span_id="t", tool="hotel", start=2, end=2),
        _message(3, "planner", "Together 939 EUR.", "b"),
    ),
    (_call("researcher", "a", 1, "one"), _call("planner", "b", 3, "two")),
    TEXTS,
    task="Rooms cost 118 EUR.",
)
POINTS = decision_points(RUN)


def test_sources_come_in_their_order() -> None:
    fixes, refused = planned_fixes(
        RUN,
        POINTS,
        Sources(
            {1: "118 EUR it is."},
            stronger_model="big",
            judge={1: "Write 118."},
        ),
    )
    assert fixes[1] == (
        Fix("person", "118 EUR it is."),
        Fix("resample"),
        Fix("stronger model", model="big"),
        Fix("judge", "Write 118."),
    )
    assert fixes[3] == (Fix("resample"), Fix("stronger model", model="big"))
    assert refused == ()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (" The room costs 181 EUR. ", "has this answer already"),
        ("The trip costs 750 EUR.", "'750'"),
        ("The trip costs 750.0 EUR.", "'750.0'"),
        ('{"tool_calls": [{"name": "hotel", "arguments": {"text": "Total:\\n750"}}]}', "'750'"),
        ('{"text": "right", "tool_calls": []}', "oracle takes its text for the right answer"),
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


def test_a_step_that_no_model_has_made_cannot_be_corrected() -> None:
    with pytest.raises(ConfigurationError, match="not a tool call with a result"):
        planned_fixes(RUN, POINTS, Sources({0: "x"}))
    _, refused = planned_fixes(RUN, POINTS, Sources({}, judge={0: "x"}))
    assert refused[0].source == "judge"


@pytest.mark.parametrize(("text", "said"), [("  ", "empty"), ('{"tool_calls": 3}', "list")])
def test_a_text_that_is_no_answer_is_a_mistake(text: str, said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        planned_fixes(RUN, POINTS, Sources({1: text}))


def test_the_result_of_a_tool_can_be_corrected() -> None:
    fixes, refused = planned_fixes(RUN, POINTS, Sources({}, judge={2: "181 EUR"}))
    assert fixes[2] == (Fix("judge", "181 EUR", result=True),)
    assert refused == ()
    _, refused = planned_fixes(RUN, POINTS, Sources({}, judge={2: "118 EUR"}))
    assert "has this result already" in refused[0].reason


def test_a_right_result_of_a_tool_is_a_correction_of_a_person() -> None:
    """It is no answer; one that is given as a fix besides is tried once."""
    sources = Sources({2: "181 EUR"}, resample=False, results={2: "181 EUR"}, judge={2: "99 EUR"})
    fixes, refused = planned_fixes(RUN, POINTS, sources)
    assert fixes == {
        2: (Fix("person", "181 EUR", result=True), Fix("judge", "99 EUR", result=True))
    }
    assert refused == ()
    with pytest.raises(ConfigurationError, match="not a tool call with a result"):
        planned_fixes(RUN, POINTS, Sources({}, results={1: "181 EUR"}))
    _, refused = planned_fixes(
        RUN, POINTS, Sources({}, results={2: "750 EUR"}, answers=["750 EUR"])
    )
    assert "'750'" in refused[0].reason


@pytest.mark.parametrize("live", ["hotel", "*"])
def test_a_run_with_a_live_tool_has_corrections(live: str) -> None:
    """The tool's value is none that a text can hold, so that the run cannot be replayed otherwise."""
    room = replace(RUN.steps[2], result_type="opaque Room")
    run = replace(RUN, steps=(*RUN.steps[:2], room, RUN.steps[3]))
    setup = Setup(("program",), live_tools=(live,), fixes={1: "118 EUR."})
    fixes, refused = fixes_of(run, POINTS, None, setup, "")
    assert (fixes[1][0], refused) == (Fix("person", "118 EUR."), ())
    with pytest.raises(ConfigurationError, match="a value of Room, which no text can stand for"):
        planned_fixes(run, POINTS, Sources({2: "181 EUR"}), live_tools=[live])
    with pytest.raises(NotReplayable, match="--set live_tools=hotel"):
        planned_fixes(run, POINTS, Sources({1: "118 EUR."}))


@pytest.mark.parametrize(
    ("arguments", "right"),
    [
        ({"text": "ri\nght"}, "ri\nght"),
        ({"a": [1, {"b": 4711}]}, "4711"),
        ({"right": 1}, "right"),
        ({"a": [None, True]}, "true"),
        ({"a": '{"b": ["x", 4711.5]}'}, "4711.5"),
        ('{"a": "ri\\nght"}', "ri\nght"),
    ],
)
def test_the_oracle_is_asked_about_every_argument(arguments: Any, right: str) -> None:
    oracle = Oracle((sys.executable, "-c", f"import sys; sys.exit(sys.stdin.read() != {right!r})"))
    call = {"text": "", "tool_calls": [{"name": "hotel", "arguments": arguments}]}
    _, refused = planned_fixes(RUN, POINTS, Sources({1: json.dumps(call)}), oracle)
    assert "for the right answer, so it would succeed" in refused[0].reason


def test_the_oracle_is_not_asked_about_the_names_of_the_form_nor_without_end() -> None:
    keys = ("text", "tool_calls", "name", "arguments")
    code = f"import sys; sys.exit(sys.stdin.read() not in {keys})"
    oracle = Oracle((sys.executable, "-c", code))
    call: dict[str, Any] = {"tool_calls": [{"name": "hotel", "arguments": {"day": 4}}]}
    fixes, refused = planned_fixes(RUN, POINTS, Sources({1: json.dumps(call)}), oracle)
    assert (fixes[1][0].source, refused) == ("person", ())
    call["tool_calls"] = [{"name": "hotel", "arguments": {"days": [*range(300)]}}]
    _, refused = planned_fixes(RUN, POINTS, Sources({1: json.dumps(call)}), oracle)
    assert "the oracle is asked about 200 at most" in refused[0].reason


@pytest.mark.parametrize(
    ("step", "agent", "found"), [(1, "x", 1), (2, "planner", 1), (3, "planner", 3), (9, "", 3)]
)
def test_a_step_belongs_to_the_answer_before_it(step: int, agent: str, found: int) -> None:
    point = point_of(step, agent, POINTS)
    assert point is not None
    assert point.step == found


def test_nothing_comes_before_the_first_answer() -> None:
    assert point_of(0, "user", POINTS) is None
