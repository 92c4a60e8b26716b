"""Reads the steps of a run from its spans: messages, tool calls, and model actions that are neither."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mast_trace import semconv
from mast_trace.content import MOST_CONTENT, as_text
from mast_trace.trajectory import vocabulary
from mast_trace.trajectory.copies import is_ours
from mast_trace.trajectory.model import SpanRecord, Step, StepKind
from mast_trace.trajectory.outputs import (
    answer_in,
    is_of_an_agent,
    output_words,
    with_answers,
    word_of,
)
from mast_trace.trajectory.span_messages import Texts, key
from mast_trace.trajectory.vocabulary import text

if TYPE_CHECKING:
    from mast_trace.messages import Message


def steps_of(
    spans: Sequence[SpanRecord],
    agents: Mapping[str, str],
    texts: Texts,
    aliases: Mapping[str, str],
) -> tuple[Step, ...]:
    """Return the numbered steps of a run.

    Args:
        spans: by start time.
        agents: the acting agent of a span, by its `key`.
        texts: see `texts_of`.
        aliases: see `aliases_of`.
    """

    def words(span: SpanRecord) -> int | None:
        if span.operation != semconv.CHAT:
            return word_of(result_of(span)[2])
        answer = texts.answer_of(span)
        return word_of(answer.content) if answer else None

    def outputs(span: SpanRecord) -> Sequence[int]:
        answer = texts.answer_of(span)
        if answer is None:
            return output_words(span)
        word = word_of(answer.content)
        return () if word is None else (word,)

    chosen, spoken = choose_steps(spans, texts, aliases, agents, words, outputs)
    return tuple(
        step_of(span, agents[key(span)], index, texts.answer_of(span), spoken=spoken)
        for index, span in enumerate(chosen)
    )


def choose_steps(
    spans: Sequence[SpanRecord],
    texts: Texts,
    aliases: Mapping[str, str],
    agents: Mapping[str, str],
    words: Callable[[SpanRecord], int | None],
    outputs: Callable[[SpanRecord], Sequence[int]],
) -> tuple[list[SpanRecord], bool]:
    """Return the spans that are steps, in order, and whether models' answers count as the messages.

    Args:
        spans: by start time.
        texts: see `texts_of`.
        aliases: see `aliases_of`.
        agents: the acting agent of a span, by its `key`.
        words: the hash of a message's text, a tool's result, a model's answer.
        outputs: the hashes of the texts in the output of an agent's span.
    """
    said = {
        text(span.attributes, semconv.MESSAGE_ID)
        for span in spans
        if span.operation == semconv.SEND_MESSAGE
    }
    called = _called(spans)
    chosen: list[SpanRecord] = []
    for span in spans:
        operation = span.operation
        if operation in {semconv.SEND_MESSAGE, semconv.EXECUTE_TOOL}:
            chosen.append(span)
        elif operation == semconv.CHAT:
            identity = text(span.attributes, semconv.MESSAGE_ID)
            became = bool(identity) and aliases.get(identity, identity) in said
            if not became and not _only_calls(texts.answer_of(span), called):
                chosen.append(span)
    known = said | {text(span.attributes, semconv.MESSAGE_ID) for span in chosen} - {""}
    # In a run of ours our spans count, not another tool's spans of the same agents.
    ours = any(map(is_ours, spans))
    answered = {
        key(span): outputs(span)
        for span in spans
        if is_of_an_agent(span)
        and (not ours or is_ours(span))
        and text(span.attributes, semconv.MESSAGE_ID) not in known
    }
    answered = {identity: told for identity, told in answered.items() if told}

    def actor(span: SpanRecord) -> str:
        return actor_of(span, agents[key(span)])

    return with_answers(spans, chosen, answered, words, actor), not said


def step_of(
    span: SpanRecord, agent: str, index: int, output: Message | None, *, spoken: bool
) -> Step:
    """Return the step that a span is.

    Args:
        span: one that `choose_steps` has chosen.
        agent: the acting agent.
        index: its number.
        output: a model's answer; see `Texts.answer_of`.
        spoken: whether a model's answer counts as its agent's message, because none are recorded.
    """
    who = actor_of(span, agent)
    if span.operation == semconv.SEND_MESSAGE:
        return _message_step(span, who, index)
    if span.operation == semconv.EXECUTE_TOOL:
        return _tool_step(span, who, index)
    if span.operation != semconv.CHAT:
        return _answer_step(span, who, index, output)
    step = _model_step(span, who, index, output)
    if spoken and step.text.strip():
        return replace(step, kind=StepKind.MESSAGE, role="assistant")
    return step


def actor_of(span: SpanRecord, agent: str) -> str:
    """Return the agent of a span's step: a message's sender, or the agent that asked for a tool's run."""
    if span.operation == semconv.SEND_MESSAGE:
        return str(vocabulary.read(span.attributes, "sender") or agent)
    if span.operation == semconv.EXECUTE_TOOL:
        return text(span.attributes, semconv.TOOL_REQUESTED_BY) or agent
    return agent


def _called(spans: Sequence[SpanRecord]) -> set[str]:
    """Ids of the executed tool calls; and names, where a tool's ids are not the model's."""
    executed = [s for s in spans if s.operation == semconv.EXECUTE_TOOL]
    called = {str(vocabulary.read(span.attributes, "tool_call_id") or "") for span in executed}
    if not any(semconv.FRAMEWORK in span.attributes for span in executed):
        called |= {str(vocabulary.read(span.attributes, "tool") or "") for span in executed}
    return called - {""}


def _only_calls(output: Message | None, called: set[str]) -> bool:
    """Return whether a model's answer consists of tool calls that are steps themselves."""
    if output is None or output.content.strip() or not output.tool_calls:
        return False
    return all(call.id in called or call.name in called for call in output.tool_calls)


def result_of(span: SpanRecord) -> tuple[str, str, str]:
    """Return tool, arguments and text of a message or a tool's run."""
    attributes = span.attributes
    if span.operation == semconv.SEND_MESSAGE:
        calls = text(attributes, semconv.MESSAGE_TOOL_CALLS)
        return "", calls, text(attributes, semconv.MESSAGE_CONTENT)
    return (
        str(vocabulary.read(attributes, "tool") or ""),
        str(vocabulary.read(attributes, "arguments") or ""),
        str(vocabulary.read(attributes, "result") or ""),
    )


def arguments_of(output: Message) -> str:
    """Return the calls that a model's answer asks for, as JSON text; empty if it asks for none."""
    calls = [{"name": call.name, "arguments": call.arguments} for call in output.tool_calls]
    return as_text(calls, MOST_CONTENT) if calls else ""


def _message_step(span: SpanRecord, agent: str, index: int) -> Step:
    attributes = span.attributes
    _, arguments, said = result_of(span)
    return Step(
        index=index,
        kind=StepKind.MESSAGE,
        agent=agent,
        text=said,
        role=text(attributes, semconv.MESSAGE_ROLE),
        recipients=vocabulary.strings(vocabulary.read(attributes, "recipients")),
        in_reply_to=text(attributes, semconv.MESSAGE_IN_REPLY_TO),
        arguments=arguments,
        synthetic=text(attributes, semconv.MESSAGE_SYNTHETIC).lower() == "true",
        **_common(span),
    )


def _tool_step(span: SpanRecord, agent: str, index: int) -> Step:
    attributes = span.attributes
    tool, arguments, result = result_of(span)
    return Step(
        index=index,
        kind=StepKind.TOOL,
        agent=agent,
        text=result,
        tool=tool,
        arguments=arguments,
        call_id=str(vocabulary.read(attributes, "tool_call_id") or ""),
        result_type=text(attributes, semconv.TOOL_RESULT_TYPE),
        requested_by=text(attributes, semconv.TOOL_REQUESTED_BY),
        **_common(span),
    )


def _answer_step(span: SpanRecord, agent: str, index: int, output: Message | None) -> Step:
    """An answer that only the end of an agent's span records."""
    known = {**_common(span), "start": span.end, "input_tokens": 0, "output_tokens": 0}
    said = output.content if output else answer_in(vocabulary.read(span.attributes, "output"))
    return Step(
        index=index,
        kind=StepKind.MESSAGE,
        agent=agent,
        text=said,
        role="assistant",
        arguments=arguments_of(output) if output else "",
        **known,
    )


def _model_step(span: SpanRecord, agent: str, index: int, output: Message | None) -> Step:
    return Step(
        index=index,
        kind=StepKind.MODEL,
        agent=agent,
        text=output.content if output else "",
        arguments=arguments_of(output) if output else "",
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
        "handoff_to": str(vocabulary.read(attributes, "handoff_target") or ""),
        "error": error_of(span),
        "input_tokens": tokens_of(span, "input_tokens"),
        "output_tokens": tokens_of(span, "output_tokens"),
        "redacted": vocabulary.strings(attributes.get(semconv.CONTENT_REDACTED)),
        "cut": vocabulary.strings(attributes.get(semconv.CONTENT_TRUNCATED)),
    }


def tokens_of(span: SpanRecord, field: str) -> int:
    """Return ``input_tokens`` or ``output_tokens`` of a model call; 0 if it has none."""
    return vocabulary.integer(vocabulary.read(span.attributes, field)) or 0


def error_of(span: SpanRecord) -> str | None:
    """Return the text of an error; None if there was none."""
    if span.status != "Error":
        return None
    return span.status_message or text(span.attributes, semconv.ERROR_TYPE) or "error"
