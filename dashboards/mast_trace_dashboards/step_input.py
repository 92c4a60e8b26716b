"""The input of a step: the messages that its agent's model was shown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mast_trace.replay.canonical import canonical_arguments
from mast_trace.trajectory import StepKind

if TYPE_CHECKING:
    from mast_trace.messages import Message
    from mast_trace.trajectory import Invocation, Step, Trajectory


@dataclass(frozen=True)
class StepInput:
    """The input of the model call that produced a step.

    Attributes:
        agent: the calling agent.
        model: the model; empty for an agent's turn without a recorded model call.
        messages: the messages that were shown, in order.
        missing: number of messages whose texts were not recorded.
    """

    agent: str
    model: str
    messages: tuple[Message, ...]
    missing: int


def input_of(run: Trajectory, number: int) -> StepInput | None:
    """Return the input of a step; None if the run does not record one.

    A message's input is that of the model call that wrote it, else that of the agent's turn. The input
    of a tool call is that of the model call that asked for it: by the call's id, else the last one before it
    with the same tool and arguments.

    Raises:
        IndexError: the run has no such step.
    """
    step = run.steps[number]
    found = _producer(run, step)
    if found is None:
        return None
    messages = tuple(run.seen_by(found))
    return StepInput(found.agent, found.model, messages, len(found.input_ids) - len(messages))


def _producer(run: Trajectory, step: Step) -> Invocation | None:
    with_input = [each for each in run.invocations if each.input_ids]
    if step.kind is StepKind.TOOL:
        asking = [each for each in with_input if _asked_for(run, each, step)]
        return max(asking, key=lambda each: each.end, default=None)
    own = [each for each in with_input if each.span_id == step.span_id]
    wrote = [each for each in with_input if step.message_id and each.output_id == step.message_id]
    models_first = sorted(own + wrote, key=lambda each: each.kind != "model")
    return models_first[0] if models_first else None


def _asked_for(run: Trajectory, call: Invocation, step: Step) -> bool:
    """Return whether the answer of a model call asks for a tool step."""
    said = run.texts.get(call.output_id)
    if said is None or call.kind != "model":
        return False
    if step.call_id:
        return any(each.id == step.call_id for each in said.tool_calls)
    wanted = canonical_arguments(step.arguments)
    return call.end <= step.start and any(
        each.name == step.tool and canonical_arguments(each.arguments) == wanted
        for each in said.tool_calls
    )
