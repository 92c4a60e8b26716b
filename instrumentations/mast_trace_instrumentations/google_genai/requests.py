"""Requests, read into the messages that the model is shown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from mast_trace.content import as_text
from mast_trace.messages import Message, ToolCall
from mast_trace_instrumentations.model_calls import field, media_mark

_ROLES = {"model": "assistant", "function": "tool"}
_RESULTS = ({"result"}, {"output"}, {"error"})
"""Keys under which the client and its users put the result of a function."""


def messages(request: Mapping[str, Any]) -> list[Message]:
    """Read the system instruction and the contents of a request."""
    system = part_of(request.get("config"), "system_instruction")
    parts = list(_parts(system)) if system else []
    shown = [Message(text_of(parts), role="system")] if parts else []
    for role, content in _contents(request.get("contents")):
        shown.extend(_messages(role, content))
    return shown


def part_of(item: Any, name: str) -> Any:
    """Read a field that a mapping may spell in either of two ways."""
    found = field(item, name)
    if found is None and isinstance(item, Mapping):
        first, *more = name.split("_")
        return item.get(first + "".join(word.title() for word in more))
    return found


def text_of(parts: Iterable[Any]) -> str:
    """Return the text of parts; thoughts are left out, and marks stand for other media."""
    return "".join(_part_text(part) for part in parts)


def tool_calls(parts: Iterable[Any]) -> tuple[ToolCall, ...]:
    """Return the calls of functions among parts."""
    calls = (part_of(part, "function_call") for part in parts)
    return tuple(
        ToolCall(str(field(call, "name") or ""), field(call, "args") or {}, field(call, "id"))
        for call in calls
        if call is not None
    )


def _contents(given: Any) -> Iterator[tuple[str, list[Any]]]:
    """Yield roles and parts; bare parts belong to the user, as in the client."""
    alone: list[Any] = []
    for item in given if isinstance(given, list | tuple) else [given]:
        if part_of(item, "parts") is None:
            alone.extend(_parts(item))
            continue
        if alone:
            yield "user", alone
            alone = []
        yield str(field(item, "role") or "user"), list(_parts(item))
    if alone:
        yield "user", alone


def _parts(content: Any) -> Iterator[Any]:
    """Return the parts of a content, a part alone, or the items of a list of them."""
    parts = part_of(content, "parts")
    if parts is not None:
        yield from parts
    elif isinstance(content, list | tuple):
        for item in content:
            yield from _parts(item)
    elif content is not None:
        yield content


def _messages(role: str, parts: list[Any]) -> Iterator[Message]:
    """Read a content: each result of a function in it is a message of its own."""
    rest: list[Any] = []
    for part in parts:
        answered = part_of(part, "function_response")
        if answered is None:
            rest.append(part)
            continue
        result = _result(field(answered, "response"))
        yield Message(result, role="tool", tool_call_id=field(answered, "id"))
    calls = tool_calls(rest)
    text = text_of(rest)
    if text or calls or not parts:
        yield Message(text, role=_ROLES.get(role, role), tool_calls=calls)


def _result(response: Any) -> str:
    if isinstance(response, Mapping) and set(response) in _RESULTS:
        (response,) = response.values()
    return as_text(response)


def _part_text(part: Any) -> str:
    if isinstance(part, str):
        return part
    if part_of(part, "function_call") is not None or field(part, "thought"):
        return ""
    text = field(part, "text")
    if isinstance(text, str):
        return text
    for name, inside in (("inline_data", "data"), ("file_data", "file_uri")):
        media = part_of(part, name)
        if media is not None:
            kind = str(part_of(media, "mime_type") or name)
            return media_mark(kind, part_of(media, inside))
    for name, inside in (("executable_code", "code"), ("code_execution_result", "output")):
        code = part_of(part, name)
        if code is not None:
            return str(field(code, inside) or "")
    address = field(part, "uri")
    return media_mark(str(part_of(part, "mime_type") or type(part).__name__), address)
