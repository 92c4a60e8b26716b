"""New answers in place of a recorded one, as an arm asks for them."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING, Any

from mast_trace.messages import Message, ToolCall, parsed
from mast_trace.replay.asked_calls import is_call_of
from mast_trace.replay.canonical import canonical_arguments, canonical_text
from mast_trace.trajectory import StepKind
from mast_trace_lab.replay.unfit import NoChange, NotAnArm, told

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mast_trace.replay.tape import Exchange
    from mast_trace.trajectory import Trajectory
    from mast_trace_judge.arms import Arm

_OF_FIXES = {"text", "tool_calls"}


def new_answer(recorded: Trajectory, arm: Arm, exchange: Exchange) -> Message:
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


def _other_arguments(recorded: Trajectory, arm: Arm, said: Message) -> Message:
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
