"""The input of a step: the messages that its agent's model was shown, and their difference to its previous input."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Final, Literal

from mast_trace.replay.canonical import canonical_arguments
from mast_trace.trajectory import Invocation, Step, StepKind, Trajectory

if TYPE_CHECKING:
    from mast_trace.messages import Message

_MOST_ALIGNED: Final = 2000
"""Messages between the common beginning and end of two inputs that are aligned one by one."""

State = Literal["kept", "new", "gone"]


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


@dataclass(frozen=True)
class SeenMessage:
    """One message of an input.

    Attributes:
        identity: id of the message.
        role: the role under which it was shown.
        message: the message; None where its text was not recorded.
        state: ``kept`` (the agent's previous input has it too), ``new``, or ``gone`` (only the previous input
            has it).
        step: number of the step in which it was said; None if no step holds it.
    """

    identity: str
    role: str
    message: Message | None
    state: State
    step: int | None


@dataclass(frozen=True)
class SeenInput:
    """The input of a step beside the previous input of the same agent.

    Attributes:
        number: of the step.
        agent: the calling agent.
        model: the model; empty for an agent's turn without a recorded model call.
        parameters: of the model call, as ``name=value``; empty if not recorded.
        first: whether the agent was shown nothing earlier, so that there is nothing to compare with.
        previous_step: number of the step that the previous input led to; None if it led to none.
        messages: those of both inputs, in order.
    """

    number: int
    agent: str
    model: str
    parameters: tuple[str, ...]
    first: bool
    previous_step: int | None
    messages: tuple[SeenMessage, ...]

    @property
    def shown(self) -> tuple[SeenMessage, ...]:
        """The messages that this input has."""
        return tuple(each for each in self.messages if each.state != "gone")

    @property
    def missing(self) -> int:
        """Number of its messages whose texts were not recorded."""
        return sum(each.message is None for each in self.shown)

    def count(self, state: State) -> int:
        """Return the number of messages of a state."""
        return sum(each.state == state for each in self.messages)


def seen_at(run: Trajectory, number: int) -> SeenInput | None:
    """Return the input of a step, compared with the agent's previous one; None if the run records none.

    Raises:
        IndexError: the run has no such step.
    """
    found = _producer(run, run.steps[number])
    if found is None:
        return None
    before = _previous(run, found)
    said: dict[str, int] = {}
    for step in run.steps:
        if step.message_id:
            said.setdefault(step.message_id, step.index)
    messages = [
        SeenMessage(identity, role, _message(run, found, identity, role), state, said.get(identity))
        for identity, role, state in _aligned(_pairs(before), _pairs(found))
    ]
    return SeenInput(
        number,
        found.agent,
        found.model,
        found.parameters,
        before is None,
        _step_after(run, before),
        tuple(messages),
    )


def why_unknown(run: Trajectory, number: int) -> str:
    """Return the reason why the input of a step is unknown, as a sentence."""
    if run.unread_from <= number < run.unread_to:
        return "The run is too long to be read whole, and this step lies in the part that was left out."
    return "No model call with its input was recorded for this step."


def _pairs(call: Invocation | None) -> list[tuple[str, str]]:
    if call is None:
        return []
    roles = [*call.input_roles, *[""] * (len(call.input_ids) - len(call.input_roles))]
    return list(zip(call.input_ids, roles, strict=False))


def _message(run: Trajectory, call: Invocation, identity: str, role: str) -> Message | None:
    alone = replace(call, input_ids=(identity,), input_roles=(role,))
    return next(iter(run.seen_by(alone)), None)


def _previous(run: Trajectory, call: Invocation) -> Invocation | None:
    """Return the last earlier call of the same agent, or its turn, that has an input."""
    own = (
        each
        for each in run.invocations
        if each.agent == call.agent and each.kind == call.kind and each.input_ids
    )
    earlier = [each for each in own if each.start < call.start and each.span_id != call.span_id]
    return max(earlier, key=lambda each: each.start, default=None)


def _step_after(run: Trajectory, call: Invocation | None) -> int | None:
    """Return the first step that a call produced."""
    if call is None:
        return None
    for step in run.steps:
        wrote = bool(call.output_id) and step.message_id == call.output_id
        if wrote or step.span_id == call.span_id:
            return step.index
        if step.kind is StepKind.TOOL and _asked_for(run, call, step):
            return step.index
    return None


def _aligned(
    before: list[tuple[str, str]], now: list[tuple[str, str]]
) -> Iterator[tuple[str, str, State]]:
    """Yield the messages of two inputs in order, each once where both have it at the same place."""
    begin = 0
    while begin < min(len(before), len(now)) and before[begin] == now[begin]:
        begin += 1
    yield from ((identity, role, "kept") for identity, role in now[:begin])
    left, right = before[begin:], now[begin:]
    if max(len(left), len(right)) > _MOST_ALIGNED:
        left = []
    for kind, one, two, three, four in SequenceMatcher(
        None, left, right, autojunk=False
    ).get_opcodes():
        if kind == "equal":
            yield from ((identity, role, "kept") for identity, role in right[three:four])
        else:
            yield from ((identity, role, "gone") for identity, role in left[one:two])
            yield from ((identity, role, "new") for identity, role in right[three:four])


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
