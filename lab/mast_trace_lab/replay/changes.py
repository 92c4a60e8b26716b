"""Makes the intervention of an arm: the change that a replayed program's player carries out."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING, Any

from mast_trace.exceptions import MastTraceError
from mast_trace.messages import Message, ToolCall, parsed
from mast_trace.replay.canonical import canonical_arguments, canonical_text
from mast_trace.replay.executions import is_call_of
from mast_trace.replay.intervention import Intervention, LaterChange, LaterResult
from mast_trace.result_types import opaque_type
from mast_trace.trajectory import Step, StepKind, Trajectory
from mast_trace_judge.arms import Fix, Operator, ReplayArm
from mast_trace_judge.decision_points import DecisionPoint, decision_points

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mast_trace.replay.tape import Exchange, Tape


class NotAnArm(MastTraceError):
    """The run has no such step, or its step does not allow the change."""


class NoChange(NotAnArm):
    """A change after which the step would be as it was recorded; such a replay proves nothing."""


class NotConfirmable(MastTraceError):
    """The run cannot be confirmed; the text says why, and what to do."""


def told(recorded: Trajectory, index: int) -> str:
    """Return a step in words, such as ``analyst calls look_up``."""
    step = recorded.steps[index]
    did = f"calls {step.tool}" if step.tool else f"says {step.text[:40]!r}"
    return f"{step.agent or 'an unknown agent'} {did}"


_OF_FIXES = {"text", "tool_calls"}


def new_answer(recorded: Trajectory, arm: ReplayArm, exchange: Exchange) -> Message:
    """Return the answer that an arm puts in the place of a recorded one.

    Raises:
        NotAnArm: the arm lacks a text, or its text is unclear.
        NoChange: the answer has no tool call that could be dropped.
    """
    said = exchange.answer or Message("")
    if arm.operator == "drop":
        if not said.tool_calls:
            raise NoChange(f"Step {arm.step} asks for no tool call, so nothing could be dropped.")
        text = (arm.fix.text if arm.fix else "") or said.content
        if not text.strip():
            # Programs do not expect an empty answer: some wait for ever, others end with an error.
            raise NotAnArm(
                f"The answer of step {arm.step} consists of tool calls alone, so that it would be "
                "empty without them; replace it by a text."
            )
        return dataclasses.replace(said, content=text, tool_calls=())
    if arm.fix is None:
        raise NotAnArm(f"The operator `{arm.operator}` needs a text.")
    if arm.operator == "arguments":
        return _other_arguments(recorded, arm, said)
    given = given_calls(arm.fix.text)
    if given is not None:
        text, calls = given
        return dataclasses.replace(said, content=text, tool_calls=_with_ids(calls, said.tool_calls))
    if not arm.fix.text.strip():
        raise NotAnArm("The fix is empty.")
    calls = said.tool_calls if said.content else ()
    return dataclasses.replace(said, content=arm.fix.text, tool_calls=calls)


def _other_arguments(recorded: Trajectory, arm: ReplayArm, said: Message) -> Message:
    step = recorded.steps[arm.step]
    place = next(
        (place for place, call in enumerate(said.tool_calls) if is_call_of(step, call)), None
    )
    if step.kind is not StepKind.TOOL or place is None:
        raise NotAnArm(
            f"Step {arm.step} ({told(recorded, arm.step)}) is not a tool call that a model asked for, "
            "so its arguments cannot be changed."
        )
    assert arm.fix is not None
    if not isinstance(parsed(arm.fix.text), dict):
        raise NotAnArm("New arguments are a JSON object.")
    calls = list(said.tool_calls)
    calls[place] = dataclasses.replace(calls[place], arguments=arm.fix.text)
    return dataclasses.replace(said, tool_calls=tuple(calls))


def given_calls(text: str) -> tuple[str, tuple[ToolCall, ...]] | None:
    """Return text and tool calls of a fix that is a JSON object; None if it is a text.

    Raises:
        NotAnArm: its tool calls are no such list.
    """
    shape: Any = parsed(text)
    if not isinstance(shape, dict) or "tool_calls" not in shape or set(shape) - _OF_FIXES:
        return None
    try:
        calls = tuple(
            ToolCall(str(each["name"]), json.dumps(each.get("arguments") or {}))
            for each in shape["tool_calls"]
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise NotAnArm(
            "Tool calls of a fix are a list of objects with `name` and `arguments`."
        ) from error
    return str(shape.get("text") or ""), calls


def _with_ids(calls: Sequence[ToolCall], recorded: Sequence[ToolCall]) -> tuple[ToolCall, ...]:
    ids = [call.id for call in recorded[: len(calls)]]
    ids += [f"call_fix_{place}" for place in range(len(ids), len(calls))]
    return tuple(
        dataclasses.replace(call, id=identity) for call, identity in zip(calls, ids, strict=True)
    )


def form_of(answer: Message) -> tuple[str, list[tuple[str, str]]]:
    """Return an answer in the form in which equal answers are equal, whatever their ids."""
    calls = [(call.name, canonical_arguments(call.arguments)) for call in answer.tool_calls]
    return canonical_text(answer.content.strip()), calls


def intervention_of(recorded: Trajectory, tape: Tape, arm: ReplayArm) -> Intervention:
    """Return the intervention of an arm.

    A fix is a text, which replaces the answer's text and leaves its tool calls; where the answer has no
    text, it replaces the calls. A JSON object with the key ``tool_calls`` (a list of objects with
    ``name`` and ``arguments``) and, if wanted, ``text``, replaces both. Ids of calls are kept by place.

    Args:
        recorded: the recorded run.
        tape: its tape.
        arm: an arm other than ``verify`` and ``score``, which change nothing.

    Raises:
        NotAnArm: the run has no such step, the step does not allow the change, or the fix is unclear;
            or a joint fix changes a step twice.
        NoChange: a step would be as it was recorded.
    """
    first = _first_change(recorded, tape, arm)
    if not arm.also:
        return first
    if first.change not in {"answer", "ask", "result"} or first.request or first.error:
        raise NotAnArm("Only corrections of answers and tools' results go together.")
    parts = [first, *(_part(recorded, tape, step, fix) for step, fix in arm.also)]
    if len({(each.change == "result", each.position) for each in parts}) < len(parts):
        steps = ", ".join(map(str, (arm.step, *(step for step, _ in arm.also))))
        raise NotAnArm(f"Fixes that go together change each step once: {steps}.")
    # In a run with parallel branches, steps may have ended in another order than they began.
    head, *later = sorted(parts, key=_time)
    answers, results = (
        [each for each in later if (each.change == "result") == is_result]
        for is_result in (False, True)
    )
    return dataclasses.replace(
        head,
        hold=arm.hold,
        also=tuple(LaterChange(each.position, each.answer, each.model) for each in answers),
        results=tuple(LaterResult(each.position, each.result) for each in results),
    )


def _part(recorded: Trajectory, tape: Tape, step: int, fix: Fix) -> Intervention:
    """Return a later part of a joint fix as if it were made alone."""
    operator: Operator = "result" if fix.result else "fix" if fix.text else "model"
    return _first_change(recorded, tape, ReplayArm(operator, step, fix))


def _time(change: Intervention) -> tuple[int, bool]:
    """Return a sort key: an answer comes before the results of its tools, which have no order."""
    is_result = change.change == "result"
    return change.border if is_result else change.position + 1, is_result


def _first_change(recorded: Trajectory, tape: Tape, arm: ReplayArm) -> Intervention:
    if arm.operator == "start":
        return Intervention("start")
    if arm.operator in {"result", "error"}:
        return _of_result(recorded, tape, arm)
    point = _point_of(recorded, arm)
    place = next(
        place for place, each in enumerate(tape.exchanges) if each.span_id == point.span_id
    )
    exchange = tape.exchanges[place]
    if arm.operator == "request":
        change = parsed(arm.fix.text) if arm.fix else None
        if not isinstance(change, dict):
            raise NotAnArm("The operator `request` needs the change of the messages.")
        return Intervention("ask", place, place, request=change, hold=arm.hold)
    if arm.operator in {"resample", "model"}:
        model = arm.fix.model if arm.fix else ""
        if arm.operator == "model" and not model:
            raise NotAnArm("The operator `model` needs the name of a model.")
        if model and model == exchange.model:
            raise NoChange(f"Step {arm.step} was made by {model} already; resample it.")
        return Intervention("ask", place, place, model=model, hold=arm.hold)
    if arm.operator == "keep":
        return Intervention("keep", place, place + 1, hold=arm.hold)
    answer = new_answer(recorded, arm, exchange)
    if exchange.answer is not None and form_of(answer) == form_of(exchange.answer):
        raise NoChange(f"Step {arm.step} has this answer already, so nothing would change.")
    return Intervention("answer", place, place + 1, answer, hold=arm.hold)


def _point_of(recorded: Trajectory, arm: ReplayArm) -> DecisionPoint:
    points = decision_points(recorded)
    for point in points:
        if point.step == arm.step:
            return point
    _check_step(recorded, arm.step)
    if not points:
        raise NotAnArm("No step of the run is an answer of a model.")
    if arm.operator == "arguments":
        # An answer with several calls is the decision point of its first call alone.
        asking = _asking(recorded, recorded.steps[arm.step])
        for point in points:
            if point.span_id == asking:
                return point
    nearest = min(points, key=lambda each: (abs(each.step - arm.step), each.step))
    raise NotAnArm(
        f"Step {arm.step} ({told(recorded, arm.step)}) is not an answer of a model; the nearest is "
        f"step {nearest.step} ({told(recorded, nearest.step)})."
    )


def _check_step(recorded: Trajectory, step: int) -> None:
    if not 0 <= step < len(recorded.steps):
        raise NotAnArm(
            f"There is no step {step}; the run has steps 0 to {len(recorded.steps) - 1}."
        )


def _asking(recorded: Trajectory, step: Step) -> str:
    """Return the span id of the last model call that asks for a tool call; empty if there is none."""
    for call in reversed(recorded.invocations):
        answer = recorded.texts.get(call.output_id) if call.kind == "model" else None
        asked = answer.tool_calls if answer and call.end <= step.end else ()
        if any(is_call_of(step, each) for each in asked):
            return call.span_id
    return ""


def _of_result(recorded: Trajectory, tape: Tape, arm: ReplayArm) -> Intervention:
    _check_step(recorded, arm.step)
    step = recorded.steps[arm.step]
    places = {each.span_id: place for place, each in enumerate(tape.executions)}
    place = places.get(step.span_id)
    kind = opaque_type(step.result_type)
    if place is None and kind:
        raise NotAnArm(
            f"Step {arm.step} ({told(recorded, arm.step)}) returned a value of {kind}, which no text "
            "can stand for; replays execute it."
        )
    if step.kind is not StepKind.TOOL or place is None:
        tools = [each.index for each in recorded.steps if each.span_id in places]
        nearest = min(tools, key=lambda index: abs(index - arm.step), default=None)
        raise NotAnArm(
            f"Step {arm.step} ({told(recorded, arm.step)}) is not a tool call with a result"
            + (f"; the nearest is step {nearest}." if nearest is not None else ".")
        )
    text = arm.fix.text if arm.fix else ""
    if arm.operator == "error":
        return Intervention(
            "result", place, _border(recorded, tape, step), error=text, hold=arm.hold
        )
    if step.error is None and canonical_text(text) == canonical_text(step.text):
        raise NoChange(f"Step {arm.step} has this result already, so nothing would change.")
    border = _border(recorded, tape, step)
    return Intervention("result", place, border, result=text, hold=arm.hold)


def _border(recorded: Trajectory, tape: Tape, step: Step) -> int:
    """Return the number of model calls that had ended when a tool call ended."""
    later = {call.span_id for call in recorded.invocations if call.end > step.end}
    return sum(each.span_id not in later for each in tape.exchanges)
