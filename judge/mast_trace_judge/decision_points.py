"""Decision points of a run: the model answers at which a counterfactual experiment can intervene."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mast_trace.replay.executions import is_call_of
from mast_trace.trajectory import Invocation, Step, StepKind, Trajectory

if TYPE_CHECKING:
    from mast_trace.messages import Message


@dataclass(frozen=True)
class DecisionPoint:
    """One recorded model answer.

    Attributes:
        step: index of the first step that the answer made.
        agent: name of the agent that answered; empty if unknown.
        span_id: id of the model call's span.
        text: the answer's text; of an answer without text, its tool calls.
    """

    step: int
    agent: str
    span_id: str
    text: str


def decision_points(recorded: Trajectory) -> tuple[DecisionPoint, ...]:
    """Return the model answers of a run in the order of their completion.

    A failed call, and an answer of which no step of the run was made, is no decision point.
    """
    points = []
    taken: set[int] = set()
    calls = [call for call in recorded.invocations if call.kind == "model" and call.error is None]
    for call in sorted(calls, key=lambda each: each.end):
        answer = recorded.texts.get(call.output_id)
        step = _first_step(recorded, call, answer, taken)
        if step is not None:
            taken.add(step.index)
            agent = call.agent or step.agent
            points.append(DecisionPoint(step.index, agent, call.span_id, _words(call, answer)))
    return tuple(points)


def _first_step(
    recorded: Trajectory, call: Invocation, answer: Message | None, taken: set[int]
) -> Step | None:
    asked = answer.tool_calls if answer else ()
    for step in recorded.steps:
        if step.index in taken or step.end < call.start:
            continue
        if step.span_id == call.span_id:
            return step
        if step.kind is StepKind.MESSAGE and call.output_id and step.message_id == call.output_id:
            return step
        if any(is_call_of(step, each) for each in asked):
            return step
    return None


def _words(call: Invocation, answer: Message | None) -> str:
    if answer is None:
        return call.output_text
    asked = ", ".join(f"{each.name}({each.text})" for each in answer.tool_calls)
    return answer.content or asked
