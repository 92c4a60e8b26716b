"""Requests, read into the messages that the model is shown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mast_trace.content import as_text, joined
from mast_trace.messages import Message, ToolCall
from mast_trace_instrumentations.model_calls import field, items


def chat_messages(request: Mapping[str, Any]) -> list[Message]:
    """Read the messages of a request to Chat Completions."""
    return [_chat_message(item) for item in items(request.get("messages"))]


def responses_messages(request: Mapping[str, Any]) -> list[Message]:
    """Read the instructions and the input of a request to Responses."""
    shown: list[Message] = []
    instructions = request.get("instructions")
    if isinstance(instructions, str) and instructions:
        shown.append(Message(instructions, role="system"))
    given = request.get("input")
    if isinstance(given, str):
        return [*shown, Message(given, role="user")]
    return [*shown, *(_response_item(item) for item in items(given))]


def tool_call(call: Any, identity: Any = None) -> ToolCall:
    """Read a call of a tool: nested under ``function`` in one interface, flat in the other."""
    function = field(call, "function") or call
    arguments = field(function, "arguments")
    return ToolCall(str(field(function, "name") or ""), arguments, identity or field(call, "id"))


def text_of(content: Any) -> str:
    """Return the text of a content; parts that are no text as JSON."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list | tuple):
        return as_text(content)
    return joined("", map(_part_text, content))


def _part_text(part: Any) -> str:
    text = field(part, "text")
    if isinstance(text, str):
        return text
    refusal = field(part, "refusal")
    return refusal if isinstance(refusal, str) else as_text(part)


def _chat_message(item: Any) -> Message:
    calls = field(item, "tool_calls")
    return Message(
        content=text_of(field(item, "content")),
        role=_role(field(item, "role")),
        name=field(item, "name"),
        tool_calls=tuple(tool_call(call) for call in calls) if calls else (),
        tool_call_id=field(item, "tool_call_id"),
    )


def _response_item(item: Any) -> Message:
    kind = field(item, "type")
    if kind == "function_call":
        return Message("", tool_calls=(tool_call(item, field(item, "call_id")),))
    if kind == "function_call_output":
        output = text_of(field(item, "output"))
        return Message(output, role="tool", tool_call_id=field(item, "call_id"))
    if field(item, "role"):
        return Message(text_of(field(item, "content")), role=_role(field(item, "role")))
    return Message(as_text(item))


def _role(role: Any) -> str:
    return {"developer": "system", "function": "tool"}.get(str(role), str(role))
