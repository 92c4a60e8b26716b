"""A run as the ordered list of its steps: the shape that judge, web view and importers share.

A **step** is one message, one tool call, one model action that is neither (a call whose answer
became a message or consists of tool calls is represented by those), or an answer that only the
output of an agent's span records. Steps are numbered from 0 by start time; an answer of the last
kind is placed at the end of its span. This is the ``trajectory`` of AgenTracer (arXiv 2509.03312).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any

from mast_trace.trajectory import vocabulary

if TYPE_CHECKING:
    from mast_trace.messages import Message


class StepKind(str, Enum):
    """The kind of a step."""

    MESSAGE = "message"
    TOOL = "tool"
    MODEL = "model"


@dataclass(frozen=True, slots=True)
class SpanRecord:
    """A stored span, free of any store's types; times in nanoseconds since the epoch.

    A span that ``is_open`` is the root of a run whose end is unknown: only its beginning was
    recorded (`mast_trace.semconv.RUN_START`).
    """

    trace_id: str
    span_id: str
    parent_span_id: str
    name: str
    start: int
    end: int
    attributes: Mapping[str, Any]
    status: str = "Unset"
    status_message: str = ""
    service: str = ""
    scope: str = ""
    is_open: bool = False
    operation: str = field(init=False, repr=False, compare=False, default="")
    """The operation of the span in our vocabulary; empty where the span has none."""

    def __post_init__(self) -> None:
        """Compute `operation`, which is read again and again."""
        object.__setattr__(self, "operation", vocabulary.operation(self.attributes))


@dataclass(frozen=True, slots=True)
class Step:
    """One step.

    Attributes:
        index: its number in the run, from 0.
        kind: message, tool or model.
        agent: the acting agent; empty if unknown.
        text: a message's content, a tool's result or a model's answer.
        span_id: the span that it was read from; empty in imported transcripts.
        start: nanoseconds since the epoch.
        end: likewise.
        role: of a message: ``user``, ``assistant``, ``system`` or ``tool``.
        recipients: those who received a message.
        message_id: id of the message that the step holds.
        in_reply_to: id of the message that the step answers.
        content_hash: of the text, present even where content is not captured.
        tool: name of the tool.
        arguments: of the tool call, or the calls that a message or model asks for, as JSON text.
        call_id: the model's id of the tool call.
        requested_by: the agent that asked for the tool, if another one executed it.
        handoff_to: the agent to which control goes.
        synthetic: the framework wrote the text in the agent's name.
        error: text of the error, None if there was none.
        input_tokens: of a model action.
        output_tokens: likewise.
        branch: the path of the parallel branch; empty outside of parallel branches, and in steps of runs
            that are too long to be read whole.
        result_type: type of a tool's result; see `mast_trace.semconv.TOOL_RESULT_TYPE`.
        redacted: names of the attributes of its span whose texts the user's redaction has changed.
        cut: names of those whose texts were cut.
    """

    index: int
    kind: StepKind
    agent: str
    text: str
    span_id: str = ""
    parent_span_id: str = ""
    start: int = 0
    end: int = 0
    role: str = ""
    recipients: tuple[str, ...] = ()
    message_id: str = ""
    in_reply_to: str = ""
    content_hash: str = ""
    tool: str = ""
    arguments: str = ""
    call_id: str = ""
    requested_by: str = ""
    handoff_to: str = ""
    synthetic: bool = False
    error: str | None = None
    input_tokens: int = 0
    output_tokens: int = 0
    branch: str = field(default="", compare=False)
    result_type: str = ""
    redacted: tuple[str, ...] = ()
    cut: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Invocation:
    """One turn of an agent or one call of a model, with its input.

    Attributes:
        kind: ``agent`` or ``model``.
        agent: the acting agent.
        input_ids: ids of the messages that were shown, in order.
        input_roles: the role of each.
        input_length: characters of all of them together; None if not recorded.
        output_id: id of the message that it produced.
        output_text: its text.
        error: text of the error, None if there was none.
        model: the model's name, of a model call.
        finish_reason: likewise.
        branch: the path of the parallel branch; empty outside of parallel branches, and in steps of runs
            that are too long to be read whole.
        provider: name of the model's provider, of a model call.
        requested_model: the model's name in the request; ``model`` prefers that of the answer.
        parameters: of a model call, as ``name=value``; empty if not recorded.
        extra: JSON of the parts of the answer beside its text and its tool calls; empty without any.
        redacted: as of a `Step`.
        cut: as of a `Step`.
    """

    kind: str
    agent: str
    span_id: str
    parent_span_id: str
    start: int
    end: int
    input_ids: tuple[str, ...] = ()
    input_roles: tuple[str, ...] = ()
    input_length: int | None = None
    output_id: str = ""
    output_text: str = ""
    error: str | None = None
    model: str = ""
    finish_reason: str = ""
    branch: str = field(default="", compare=False)
    provider: str = ""
    requested_model: str = ""
    parameters: tuple[str, ...] = ()
    extra: str = ""
    redacted: tuple[str, ...] = ()
    cut: tuple[str, ...] = ()


@dataclass(frozen=True)
class Trajectory:
    """One run.

    Attributes:
        trace_id: of the run; 32 hexadecimal digits for real traces.
        steps: in order.
        invocations: turns of agents and calls of models, by start time.
        texts: every message that a span holds, by id.
        task: the text of the task.
        outcome: ``success``, ``failure`` or empty when none was recorded.
        termination_reason: the reason for which the framework stopped.
        human_inputs: texts that a person typed, in order.
        human_input_spans: the span of the tool that asked, for each of them; empty if no tool asked.
        given_lessons: answers of `mast_trace.feedback` that the run was given, each as JSON, in order.
        seed: number by which `mast_trace.seed` has seeded `random`; empty if it was not called.
        hash_seed: value of ``PYTHONHASHSEED``; empty if it fixed no order.
        resumes: trace id of the interrupted run that this one continues; empty if there is none.
        redacted: names of the attributes of its root whose texts the user's redaction has changed.
        cut: names of those whose texts were cut.
        expected: the right answer, where the program recorded it with the outcome.
        open_items: items of the framework's plan that were open at the end.
        finished: whether the root span has arrived, and with it the run's end.
        error: text of the root span's error.
        unread_from: the first of the steps that were left out where a run was too long to be read
            whole: they have no text and count as `Step.synthetic`.
        unread_to: the first step after them; not above ``unread_from`` where none was left out.
    """

    trace_id: str
    steps: tuple[Step, ...]
    invocations: tuple[Invocation, ...] = ()
    texts: Mapping[str, Message] = field(default_factory=dict)
    name: str = ""
    framework: str = ""
    service: str = ""
    conversation_id: str = ""
    task: str = ""
    outcome: str = ""
    outcome_reason: str = ""
    termination_reason: str = ""
    open_items: tuple[str, ...] = ()
    error: str | None = None
    finished: bool = True
    start: int = 0
    end: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    unread_from: int = 0
    unread_to: int = 0
    human_inputs: tuple[str, ...] = ()
    human_input_spans: tuple[str, ...] = ()
    given_lessons: tuple[str, ...] = ()
    seed: str = ""
    hash_seed: str = ""
    resumes: str = ""
    redacted: tuple[str, ...] = ()
    cut: tuple[str, ...] = ()
    expected: str = ""

    @property
    def read_steps(self) -> tuple[Step, ...]:
        """The steps that were read: all of them, except in runs that are too long."""
        if not self.is_partial:
            return self.steps
        return self.steps[: self.unread_from] + self.steps[self.unread_to :]

    @property
    def is_partial(self) -> bool:
        """True if steps were left out."""
        return self.unread_from < self.unread_to

    @property
    def agents(self) -> tuple[str, ...]:
        """The agents that act, in the order of their first step; of a run without any, its turns'."""
        acting = self.steps or self.invocations
        return tuple(dict.fromkeys(each.agent for each in acting if each.agent))

    @property
    def final_answer(self) -> str:
        """The text of the last message that an agent wrote itself; empty if there is none."""
        for step in reversed(self.steps):
            if step.kind is StepKind.MESSAGE and step.text and not step.synthetic:
                return step.text
        return self.steps[-1].text if self.steps else ""

    def seen_by(self, invocation: Invocation) -> list[Message]:
        """Rebuild the messages that an agent or a model was shown, from the ids on its span.

        A message whose text no span of the run holds is left out.
        """
        return [
            _shown_as(role, self.texts[identity])
            for identity, role in zip(invocation.input_ids, invocation.input_roles, strict=False)
            if identity in self.texts
        ]


def _shown_as(role: str, message: Message) -> Message:
    """A message under the role in which it was shown; only a tool's answer keeps the id of its call."""
    call_id = message.tool_call_id if role == "tool" else None
    return dataclasses.replace(message, role=role, tool_call_id=call_id)
