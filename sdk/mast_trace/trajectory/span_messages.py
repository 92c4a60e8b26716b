"""Reads the messages that spans hold, whichever way a store kept them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mast_trace import semconv
from mast_trace.content import as_text
from mast_trace.messages import Message, ToolCall
from mast_trace.trajectory import vocabulary
from mast_trace.trajectory.vocabulary import text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mast_trace.trajectory.model import SpanRecord


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
    """Return what a span is known by among those of its run: its id, where it has one."""
    return span.span_id or f"id {id(span)}"


def texts_of(spans: Sequence[SpanRecord]) -> Texts:
    """Collect every message that a span holds."""
    found = Texts()
    texts = found.by_id
    for span in spans:
        attributes = span.attributes
        for shape in _shapes(attributes.get(semconv.INPUT_MESSAGES)):
            _keep(texts, _from_genai(shape))
        for shape in _shapes(attributes.get(semconv.OUTPUT_MESSAGES)):
            answer = found.answers[key(span)] = _from_genai(shape)
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
    """Map the id that a model's answer had first to that of the message that it became."""
    messages: dict[str, str] = {}
    said: set[str] = set()
    for span in spans:
        if span.operation == semconv.SEND_MESSAGE:
            identity = text(span.attributes, semconv.MESSAGE_ID)
            messages.setdefault(text(span.attributes, semconv.MESSAGE_CONTENT_HASH), identity)
            said.add(identity)
    aliases: dict[str, str] = {}
    for span in spans:
        identity = text(span.attributes, semconv.MESSAGE_ID)
        became = messages.get(text(span.attributes, semconv.MESSAGE_CONTENT_HASH))
        if identity and became and identity not in said:
            aliases[identity] = became
    return aliases


def _said(span: SpanRecord) -> Message:
    attributes = span.attributes
    return Message(
        content=text(attributes, semconv.MESSAGE_CONTENT),
        role=text(attributes, semconv.MESSAGE_ROLE) or "assistant",
        name=word(vocabulary.read(attributes, "sender")),
        id=text(attributes, semconv.MESSAGE_ID),
        tool_calls=tuple(map(_call, _shapes(attributes.get(semconv.MESSAGE_TOOL_CALLS)))),
    )


def _from_genai(shape: Mapping[str, Any]) -> Message:
    """Read a message in the convention's JSON shape; parts of other kinds are kept as JSON."""
    pieces: list[str] = []
    calls: list[ToolCall] = []
    call_id: str | None = None
    parts = shape.get("parts")
    for part in parts if isinstance(parts, list | tuple) else ():
        if not isinstance(part, dict):
            continue
        kind = part.get("type")
        if kind == "text":
            pieces.append(as_text(part.get("content")))
        elif kind == "tool_call":
            calls.append(_call(part))
        elif kind == "tool_call_response":
            call_id = word(part.get("id"))
            pieces.append(as_text(part.get("response", part.get("result"))))
        else:
            pieces.append(as_text(part))
    if not pieces and isinstance(shape.get("content"), str):
        pieces.append(shape["content"])
    return Message(
        content="\n".join(pieces),
        role=word(shape.get("role")) or "assistant",
        name=word(shape.get("name")),
        id=word(shape.get("id")),
        tool_calls=tuple(calls),
        tool_call_id=call_id,
    )


def _call(shape: Mapping[str, Any]) -> ToolCall:
    return ToolCall(word(shape.get("name")) or "", shape.get("arguments"), word(shape.get("id")))


def word(value: Any) -> str | None:
    """Read a name or an id, which may have come as a number."""
    return as_text(value) or None


def _shapes(value: Any) -> list[dict[str, Any]]:
    """Read a JSON list of objects; anything else, cut JSON too, reads as empty."""
    items = vocabulary.loaded(value) if value else None
    if not isinstance(items, list | tuple):
        return []
    return [shape for shape in items if isinstance(shape, dict)]
