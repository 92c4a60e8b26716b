"""Reads the steps of a run from its spans: messages, tool calls, and model actions that are neither."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mast_trace import semconv, vocabulary
from mast_trace.content import as_text
from mast_trace.trajectory import Step, StepKind
from mast_trace.vocabulary import text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mast_trace._texts import Texts
    from mast_trace.messages import Message
    from mast_trace.trajectory import SpanRecord


def steps_of(
    spans: Sequence[SpanRecord],
    agents: Mapping[int, str],
    texts: Texts,
    aliases: Mapping[str, str],
) -> tuple[Step, ...]:
    """Return the numbered steps of a run.

    Args:
        spans: by start time.
        agents: who acts in a span, by its `id`.
        texts: see `texts_of`.
        aliases: see `aliases_of`.
    """
    said = {
        text(span.attributes, semconv.MESSAGE_ID)
        for span in spans
        if span.operation == semconv.SEND_MESSAGE
    }
    called = _called(spans)
    steps: list[Step] = []
    for span in spans:
        operation = span.operation
        agent = agents[id(span)]
        if operation == semconv.SEND_MESSAGE:
            steps.append(_message_step(span, agent, len(steps)))
        elif operation == semconv.EXECUTE_TOOL:
            steps.append(_tool_step(span, agent, len(steps)))
        elif operation == semconv.CHAT:
            output = texts.answer_of(span)
            identity = text(span.attributes, semconv.MESSAGE_ID)
            became = bool(identity) and aliases.get(identity, identity) in said
            if not became and not _only_calls(output, called):
                steps.append(_model_step(span, agent, len(steps), output))
    return _number(steps if said else [_spoken(step) for step in steps])


def _spoken(step: Step) -> Step:
    """Where nobody records messages, a model's answer in words is the agent's message."""
    if step.kind is StepKind.MODEL and step.text.strip():
        return replace(step, kind=StepKind.MESSAGE, role="assistant")
    return step


def _called(spans: Sequence[SpanRecord]) -> set[str]:
    """Ids of the executed tool calls; and names, where a tool's ids are not the model's."""
    executed = [s for s in spans if s.operation == semconv.EXECUTE_TOOL]
    called = {str(vocabulary.read(span.attributes, "tool_call_id") or "") for span in executed}
    if not any(semconv.FRAMEWORK in span.attributes for span in executed):
        called |= {str(vocabulary.read(span.attributes, "tool") or "") for span in executed}
    return called - {""}


def _only_calls(output: Message | None, called: set[str]) -> bool:
    """Whether a model's answer is nothing but calls of tools that are steps themselves."""
    if output is None or output.content.strip() or not output.tool_calls:
        return False
    return all(call.id in called or call.name in called for call in output.tool_calls)


def _message_step(span: SpanRecord, agent: str, index: int) -> Step:
    attributes = span.attributes
    return Step(
        index=index,
        kind=StepKind.MESSAGE,
        agent=str(vocabulary.read(attributes, "sender") or agent),
        text=text(attributes, semconv.MESSAGE_CONTENT),
        role=text(attributes, semconv.MESSAGE_ROLE),
        recipients=vocabulary.strings(vocabulary.read(attributes, "recipients")),
        in_reply_to=text(attributes, semconv.MESSAGE_IN_REPLY_TO),
        arguments=text(attributes, semconv.MESSAGE_TOOL_CALLS),
        synthetic=text(attributes, semconv.MESSAGE_SYNTHETIC).lower() == "true",
        **_common(span),
    )


def _tool_step(span: SpanRecord, agent: str, index: int) -> Step:
    attributes = span.attributes
    return Step(
        index=index,
        kind=StepKind.TOOL,
        agent=text(attributes, semconv.TOOL_REQUESTED_BY) or agent,
        text=str(vocabulary.read(attributes, "result") or ""),
        tool=str(vocabulary.read(attributes, "tool") or ""),
        arguments=str(vocabulary.read(attributes, "arguments") or ""),
        call_id=str(vocabulary.read(attributes, "tool_call_id") or ""),
        requested_by=text(attributes, semconv.TOOL_REQUESTED_BY),
        **_common(span),
    )


def _model_step(span: SpanRecord, agent: str, index: int, output: Message | None) -> Step:
    calls = (
        [{"name": c.name, "arguments": c.arguments} for c in output.tool_calls] if output else []
    )
    return Step(
        index=index,
        kind=StepKind.MODEL,
        agent=agent,
        text=output.content if output else "",
        arguments=as_text(calls) if calls else "",
        **_common(span),
    )


def _common(span: SpanRecord) -> dict[str, Any]:
    attributes = span.attributes
    return {
        "span_id": span.span_id,
        "parent_span_id": span.parent_span_id,
        "start": span.start,
        "end": span.end,
        "message_id": text(attributes, semconv.MESSAGE_ID),
        "content_hash": text(attributes, semconv.MESSAGE_CONTENT_HASH),
        "handoff_to": text(attributes, semconv.HANDOFF_TARGET),
        "error": error_of(span),
        "input_tokens": tokens_of(span, "input_tokens"),
        "output_tokens": tokens_of(span, "output_tokens"),
    }


def _number(steps: list[Step]) -> tuple[Step, ...]:
    """Return the steps in order of time, numbered: most runs are so already."""
    steps.sort(key=lambda step: step.start)
    return tuple(
        step if step.index == index else replace(step, index=index)
        for index, step in enumerate(steps)
    )


def tokens_of(span: SpanRecord, field: str) -> int:
    """Return ``input_tokens`` or ``output_tokens`` of a model call; 0 if it does not say."""
    return vocabulary.integer(vocabulary.read(span.attributes, field)) or 0


def error_of(span: SpanRecord) -> str | None:
    """Return what failed; None if nothing did."""
    if span.status != "Error":
        return None
    return span.status_message or text(span.attributes, semconv.ERROR_TYPE) or "error"
