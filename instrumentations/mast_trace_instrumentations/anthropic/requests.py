"""Requests, read into the messages that the model is shown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from mast_trace.content import as_text
from mast_trace.messages import Message, ToolCall
from mast_trace_instrumentations.model_calls import field, items, media_mark

_THOUGHTS = {"thinking", "redacted_thinking"}


def messages(request: Mapping[str, Any]) -> list[Message]:
    """Read the system prompt and the messages of a request."""
    system = request.get("system")
    shown: list[Message] = []
    if isinstance(system, str | list | tuple) and system:
        shown.append(Message(text_of(system), role="system"))
    for item in items(request.get("messages")):
        shown.extend(_message(item))
    return shown


def text_of(content: Any) -> str:
    """Return the text of a content; thoughts are left out, and marks stand for other media."""
    if isinstance(content, str):
        return content
    return "".join(_part_text(part) for part in items(content))


def tool_call(block: Any) -> ToolCall:
    """Read the block of a call."""
    return ToolCall(str(field(block, "name") or ""), field(block, "input"), field(block, "id"))


def _message(item: Any) -> Iterator[Message]:
    """Read a message of the client: each result of a tool in it is a message of its own."""
    role, content = str(field(item, "role")), field(item, "content")
    if isinstance(content, str):
        yield Message(content, role=role)
        return
    rest: list[Any] = []
    calls: list[ToolCall] = []
    for block in items(content):
        kind = field(block, "type")
        if kind == "tool_use":
            calls.append(tool_call(block))
        elif kind == "tool_result":
            answered = field(block, "tool_use_id")
            yield Message(text_of(field(block, "content")), role="tool", tool_call_id=answered)
        elif kind not in _THOUGHTS:
            rest.append(block)
    if rest or calls:
        yield Message(text_of(rest), role=role, tool_calls=tuple(calls))


def _part_text(part: Any) -> str:
    kind = str(field(part, "type"))
    text = field(part, "text")
    if isinstance(text, str):
        return text
    if kind in _THOUGHTS:
        return ""
    source = field(part, "source")
    if source is not None:
        data = field(source, "data") or field(source, "url") or field(source, "file_id")
        if isinstance(data, str) and field(source, "type") == "text":
            return data
        return media_mark(str(field(source, "media_type") or kind), data)
    return as_text(part) if isinstance(part, str) else f"[{kind}]"
