"""Reads the messages that spans hold, in either form in which a store kept them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mast_trace import semconv
from mast_trace.content import as_text
from mast_trace.messages import Message, ToolCall
from mast_trace.trajectory import vocabulary
from mast_trace.trajectory.vocabulary import text

if TYPE_CHECKING:
    from mast_trace.trajectory.model import SpanRecord

ANSWER = "tool_call_response"
"""Type of a part with what a tool has answered, in the words of the convention."""
ARGUMENTS = ("arguments", "args", "input")
_CALLS_WITHIN = ("function_call", "functionCall", "toolUse")
_ANSWERS_WITHIN = ("function_response", "functionResponse", "toolResult")
"""Keys of the parts of Google's and of Bedrock's messages."""
_SILENT = frozenset({"thinking", "redacted_thinking", "reasoning"})
"""Parts that only the model itself sees."""

_TRIED = 64  # messages with the text of an answer that are compared, to stay linear


def message_of(shape: Mapping[str, Any], identity: str | None = None) -> Message:
    """Read a message of the convention (parts), of OpenAI (content, tool_calls) or of another provider.

    Parts of kinds that hold no text are kept as JSON.

    Args:
        shape: the message.
        identity: its id, where it is one of ours.
    """
    texts: list[str] = []
    calls: list[ToolCall] = []
    answers: str | None = None
    content = shape.get("content")
    for part in map(normal_part, _parts(shape)):
        kind = part.get("type")
        if kind == "tool_call":
            calls.append(call_of(part, part.get("id")))
        elif kind == ANSWER:
            answers = word(part.get("id")) or ""
            texts.append(as_text(part.get("response", part.get("result"))))
        elif str(kind) not in _SILENT and part.get("thought") is not True:
            untold = "" if kind == "text" else part  # a part whose content is not captured
            texts.append(as_text(part.get("content", part.get("text", untold))))
    if content and not _are_parts(content):
        texts.append(as_text(content))
    for call in listed_calls(shape):
        function = call.get("function")
        calls.append(call_of(function if isinstance(function, dict) else call, call.get("id")))
    role = vocabulary.role(word(shape.get("role")))
    return Message(
        "\n".join(texts),
        role="tool" if answers is not None and role == "user" else role,
        name=word(shape.get("name")),
        id=identity,
        tool_calls=tuple(calls),
        tool_call_id=answers or word(shape.get("tool_call_id")),
    )


def listed_calls(shape: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the calls that a message lists, as OpenAI does, or among what LangChain keeps beside it."""
    beside = shape.get("additional_kwargs")
    return objects(shape.get("tool_calls")) or (
        objects(beside.get("tool_calls")) if isinstance(beside, dict) else []
    )


def each_answer(shape: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Split a message that answers tool calls, and may hold more text, into one for each answer."""
    parts = [normal_part(part) for part in _parts(shape)]
    answers = [part for part in parts if part.get("type") == ANSWER]
    rest = [part for part in parts if part.get("type") != ANSWER]
    if not answers or len(parts) == 1:
        return [shape]
    told = {key: value for key, value in shape.items() if key != "content"}
    return [{**told, "parts": said} for said in (*([one] for one in answers), rest) if said]


def _parts(shape: Mapping[str, Any]) -> list[dict[str, Any]]:
    content = shape.get("content")
    return [*objects(shape.get("parts")), *(objects(content) if _are_parts(content) else ())]


def _are_parts(content: Any) -> bool:
    return isinstance(content, list) and bool(content) and len(objects(content)) == len(content)


def normal_part(part: dict[str, Any]) -> dict[str, Any]:
    """Return a part of another provider's message in the words of the convention; others as they are."""
    kind = str(part.get("type"))
    if kind in {"tool_use", "server_tool_use", "tool-call"}:
        identity, name = part.get("toolCallId"), part.get("toolName")  # Vercel's AI SDK
        return {"id": identity, "name": name, **part, "type": "tool_call"}
    if kind.endswith(("tool_result", "tool-result")):
        given = part.get("content", part.get("output", part.get("result")))
        given = given.get("value", given) if isinstance(given, dict) else given
        identity = part.get("tool_use_id", part.get("toolCallId"))
        said = message_of({"content": given}).content
        return {**part, "type": ANSWER, "id": identity, "response": said}
    for key in _CALLS_WITHIN:
        if isinstance(part.get(key), dict):
            inner = part[key]
            return {**inner, "type": "tool_call", "id": inner.get("id", inner.get("toolUseId"))}
    for key in _ANSWERS_WITHIN:
        if isinstance(part.get(key), dict):
            inner = part[key]
            said = message_of({"content": inner.get("content")}).content or inner.get("response")
            identity = inner.get("id", inner.get("toolUseId"))
            return {**inner, "type": ANSWER, "id": identity, "response": said}
    return part


def call_of(shape: Mapping[str, Any], identity: Any) -> ToolCall:
    """Read a tool call: its name and its arguments."""
    arguments = next((shape[key] for key in ARGUMENTS if key in shape), None)
    return ToolCall(word(shape.get("name")) or "", arguments, word(identity))


def objects(value: Any) -> list[dict[str, Any]]:
    """Return the objects of a list; an empty list for anything else."""
    if not isinstance(value, list | tuple):
        return []
    return [each for each in value if isinstance(each, dict)]


def word(value: Any) -> str | None:
    """Read a name or an id, which may have come as a number."""
    return as_text(value) or None


@dataclass
class Texts:
    """The messages that the spans of a run hold.

    Attributes:
        by_id: every message by its id; the first span that holds it wins.
        answers: the last answer that is written out on a span, by the span's `key`.
    """

    by_id: dict[str, Message] = field(default_factory=dict)
    answers: dict[str, Message] = field(default_factory=dict)

    def answer_of(self, span: SpanRecord) -> Message | None:
        """Return the answer on a span, or the message that it refers to."""
        written = self.answers.get(key(span))
        return written or self.by_id.get(text(span.attributes, semconv.MESSAGE_ID))


def key(span: SpanRecord) -> str:
    """Return the key of a span among those of its run: its id, where it has one."""
    return span.span_id or f"id {id(span)}"


def answer_on(span: SpanRecord) -> Message | None:
    """Return the answer on a span, as `Texts.answer_of` does for the texts of this span alone; its input is rarely read."""
    written = _shapes(span.attributes.get(semconv.OUTPUT_MESSAGES))
    return _identified(written[-1]) if written else texts_of([span]).answer_of(span)


def texts_of(spans: Sequence[SpanRecord]) -> Texts:
    """Collect every message that a span holds."""
    found = Texts()
    texts = found.by_id
    for span in spans:
        attributes = span.attributes
        for shape in _shapes(attributes.get(semconv.INPUT_MESSAGES)):
            _keep(texts, _identified(shape))
        for shape in _shapes(attributes.get(semconv.OUTPUT_MESSAGES)):
            answer = found.answers[key(span)] = _identified(shape)
            _keep(texts, answer)
        identity = text(attributes, semconv.MESSAGE_ID)
        if not identity:
            continue
        if semconv.MESSAGE_CONTENT in attributes:
            texts.setdefault(identity, _said(span))
        elif semconv.TOOL_CALL_RESULT in attributes:
            result = text(attributes, semconv.TOOL_CALL_RESULT)
            call_id = text(attributes, semconv.TOOL_CALL_ID) or None
            message = Message(content=result, role="tool", id=identity, tool_call_id=call_id)
            texts.setdefault(identity, message)
    return found


def _keep(texts: dict[str, Message], message: Message) -> None:
    if message.id:
        texts.setdefault(message.id, message)


def aliases_of(spans: Sequence[SpanRecord]) -> dict[str, str]:
    """Map the id that a model's answer had first to that of the message that it became.

    It is the next message with its text by the same agent that belongs to no other answer; else the
    next by anybody; else the first.

    Args:
        spans: by start time.
    """
    said: set[str] = set()
    messages: dict[str, list[SpanRecord]] = {}
    for span in spans:
        if span.operation == semconv.SEND_MESSAGE:
            said.add(text(span.attributes, semconv.MESSAGE_ID))
            if content := text(span.attributes, semconv.MESSAGE_CONTENT_HASH):
                messages.setdefault(content, []).append(span)
    aliases: dict[str, str] = {}
    taken: set[str] = set()
    for span in spans:
        if span.operation in {semconv.EXECUTE_TOOL, semconv.SEND_MESSAGE}:
            # A tool's result that repeats the text of a message is still the answer to its call.
            continue
        identity = text(span.attributes, semconv.MESSAGE_ID)
        found = messages.get(text(span.attributes, semconv.MESSAGE_CONTENT_HASH))
        if identity and found and identity not in said and identity not in aliases:
            became = aliases[identity] = _became(span, found, taken)
            taken.add(became)
    return aliases


def _became(span: SpanRecord, messages: Sequence[SpanRecord], taken: set[str]) -> str:
    if len(messages) > 1:
        after = bisect_left(messages, span.start, key=lambda message: message.start)
        agent = vocabulary.read(span.attributes, "agent")
        free = (
            message
            for message in messages[after : after + _TRIED]
            if text(message.attributes, semconv.MESSAGE_ID) not in taken
        )
        first = next(free, None)
        rest = (m for m in (first, *free) if m and vocabulary.read(m.attributes, "agent") == agent)
        messages = [next(rest, None) or first or messages[0]]
    return text(messages[0].attributes, semconv.MESSAGE_ID)


def _said(span: SpanRecord) -> Message:
    attributes = span.attributes
    return Message(
        content=text(attributes, semconv.MESSAGE_CONTENT),
        role=text(attributes, semconv.MESSAGE_ROLE) or "assistant",
        name=word(vocabulary.read(attributes, "sender")),
        id=text(attributes, semconv.MESSAGE_ID),
        tool_calls=tuple(
            call_of(call, call.get("id"))
            for call in _shapes(attributes.get(semconv.MESSAGE_TOOL_CALLS))
        ),
    )


def _identified(shape: Mapping[str, Any]) -> Message:
    """Read a message of ours, which has its id."""
    return message_of(shape, word(shape.get("id")))


def _shapes(value: Any) -> list[dict[str, Any]]:
    """Read a JSON list of objects; anything else, cut JSON too, reads as empty."""
    return objects(vocabulary.loaded(value)) if value else []
