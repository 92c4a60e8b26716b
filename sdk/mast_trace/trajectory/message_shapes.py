"""Reads messages in the JSON shapes that spans hold: the convention's parts, and OpenAI's fields."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mast_trace.content import as_text
from mast_trace.messages import Message, ToolCall

if TYPE_CHECKING:
    from collections.abc import Mapping

_ANSWER = "tool_call_response"


def message_of(shape: Mapping[str, Any]) -> Message:
    """Read a message of the convention (parts) or of OpenAI (content, tool_calls), without its id.

    Parts of kinds that hold no text are kept as JSON.
    """
    texts: list[str] = []
    calls: list[ToolCall] = []
    answers: str | None = None
    for part in objects(shape.get("parts")):
        kind = part.get("type")
        if kind == "tool_call":
            calls.append(call_of(part, part.get("id")))
        elif kind == _ANSWER:
            answers = word(part.get("id"))
            texts.append(as_text(part.get("response", part.get("result"))))
        else:
            texts.append(as_text(part.get("content", part)))
    content = shape.get("content")
    if content:
        texts.append(as_text(content))
    for call in objects(shape.get("tool_calls")):
        function = call.get("function")
        calls.append(call_of(function if isinstance(function, dict) else call, call.get("id")))
    role = word(shape.get("role")) or "assistant"
    return Message(
        "\n".join(texts),
        role="tool" if answers and role == "user" else role,
        name=word(shape.get("name")),
        tool_calls=tuple(calls),
        tool_call_id=answers or word(shape.get("tool_call_id")),
    )


def each_answer(shape: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Split a message that answers tool calls, and may hold more text, into one for each answer."""
    parts = objects(shape.get("parts"))
    answers = [part for part in parts if part.get("type") == _ANSWER]
    rest = [part for part in parts if part.get("type") != _ANSWER]
    if not answers or len(parts) == 1:
        return [shape]
    return [{**shape, "parts": said} for said in (*([one] for one in answers), rest) if said]


def call_of(shape: Mapping[str, Any], identity: Any) -> ToolCall:
    """Read a tool call: its name and its arguments."""
    return ToolCall(word(shape.get("name")) or "", shape.get("arguments"), word(identity))


def objects(value: Any) -> list[dict[str, Any]]:
    """Return the objects of a list; an empty list for anything else."""
    if not isinstance(value, list | tuple):
        return []
    return [each for each in value if isinstance(each, dict)]


def word(value: Any) -> str | None:
    """Read a name or an id, which may have come as a number."""
    return as_text(value) or None
