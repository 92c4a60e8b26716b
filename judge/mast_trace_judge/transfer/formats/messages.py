"""Reads one message of the shapes in which chats are kept.

They are OpenAI's, Anthropic's, LangChain's, AG2's and ShareGPT's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mast_trace.messages import ToolCall
from mast_trace.trajectory.span_messages import listed_calls, objects
from mast_trace.trajectory.vocabulary import loaded
from mast_trace_judge.transfer.formats.conversation import Entry, Result
from mast_trace_judge.transfer.formats.kinds import moment_or_zero, usage_of, whole_text, word_in

if TYPE_CHECKING:
    from collections.abc import Mapping

ROLES: Mapping[str, str] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "human": "user",
    "assistant": "assistant",
    "ai": "assistant",
    "gpt": "assistant",
    "model": "assistant",
    "AIMessageChunk": "assistant",
    "tool": "tool",
    "function": "tool",
    "ipython": "tool",
    "observation": "tool",
}
"""A role, or LangChain's type of a message -> our role."""
_USAGE = ("usage", "usage_metadata", "models_usage")
_TEXT_KEYS = ("text", "content", "refusal")
_SILENT = frozenset({"thinking", "redacted_thinking", "reasoning", "tool_call"})
"""Parts that only the model itself sees, and LangChain's second copy of a call."""


def unwrapped(shape: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a message without LangChain's wrappings (``kwargs``, ``data``) and ShareGPT's keys."""
    for wrapping in ("kwargs", "data"):
        inner = shape.get(wrapping)
        if isinstance(inner, dict) and "content" in inner:
            kind = str(shape.get("type", ""))
            return {**inner, "type": inner.get("type") or kind}
    return _from_sharegpt(shape) if is_sharegpt(shape) else shape


def is_sharegpt(shape: Mapping[str, Any]) -> bool:
    """Return whether a message has ShareGPT's keys."""
    return "from" in shape and "value" in shape and "content" not in shape and "role" not in shape


def _from_sharegpt(shape: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a message in OpenAI's keys; a call of a function is the JSON text of its value."""
    if shape["from"] != "function_call":
        return {"role": shape["from"], "content": shape["value"]}
    call = loaded(shape["value"])
    if not isinstance(call, dict) or not call.get("name"):
        return {"role": "assistant", "content": shape["value"]}
    return {"role": "assistant", "content": "", "function_call": call}


def role_of(shape: Mapping[str, Any]) -> str:
    """Return the role of an unwrapped message; empty where it has none that is known."""
    for key in ("role", "type"):
        given = shape.get(key)
        if isinstance(given, str) and given in ROLES:
            return ROLES[given]
    return ""


def entry_of(shape: Any) -> Entry:
    """Read a message.

    Raises:
        ValueError: it is none; the text names the missing part.
    """
    if not isinstance(shape, dict):
        raise ValueError(f"expected an object, not {_named(shape)}")  # noqa: TRY004
    message = unwrapped(shape)
    role = role_of(message)
    if not role:
        given = message.get("role", message.get("type"))
        raise ValueError("it has no role" if given is None else f"its role is {str(given)[:40]!r}")
    texts, calls, results = _content(message)
    calls += _calls(message)
    if role == "tool":
        told = objects(message.get("tool_responses")) or [{**message, "content": "\n".join(texts)}]
        error = _error_of(message)
        results += [_result(each, each.get("tool_call_id"), error) for each in told]
    spoken = role != "tool" and not (results and not any(texts))
    return Entry(
        role=role,
        agent=str(message.get("name") or message.get("agent") or role),
        text="\n".join(texts) if spoken else "",
        calls=tuple(calls),
        results=tuple(results),
        time=moment_or_zero(message.get("timestamp") or message.get("created_at")),
        usage=next(filter(None, (usage_of(message.get(key)) for key in _USAGE)), None),
    )


def call_of(name: Any, arguments: Any, identity: Any) -> ToolCall:
    """Return a tool call, its arguments as the text that the model wrote."""
    written = None if arguments is None else whole_text(arguments)
    return ToolCall(str(name or ""), written, str(identity) if identity else None)


def text_of_parts(content: Any) -> str:
    """Return the text of content that is a text, nothing, or a list of parts.

    Parts without a text (images, files) are kept as JSON.
    """
    if content is None:
        return ""
    if not isinstance(content, list):
        return whole_text(content)
    return "\n".join(text for part in content if (text := _text_of(part)) is not None)


def _content(message: Mapping[str, Any]) -> tuple[list[str], list[ToolCall], list[Result]]:
    """Return texts, tool calls and tool results in the content."""
    content = message.get("content")
    if "content" not in message and not _calls(message) and not message.get("tool_responses"):
        raise ValueError("it has no content")
    if not isinstance(content, list):
        text = text_of_parts(content)
        return ([text] if text else []), [], []
    texts: list[str] = []
    calls: list[ToolCall] = []
    results: list[Result] = []
    listed = {call.id for call in _calls(message)}
    for part in content:
        kind = word_in(part, "type")
        if kind in {"tool_use", "server_tool_use"}:
            if part.get("id") not in listed:
                calls.append(call_of(part.get("name"), part.get("input"), part.get("id")))
        elif kind.endswith("tool_result"):
            results.append(_result(part, part.get("tool_use_id"), _error_of(part)))
        else:
            part_text = _text_of(part)
            texts += [] if part_text is None else [part_text]
    return texts, calls, results


def _text_of(part: Any) -> str | None:
    """Return the text of a part; None where it is not for others to read."""
    if isinstance(part, str):
        return part
    if not isinstance(part, dict):
        return whole_text(part)
    if word_in(part, "type") in _SILENT:
        return None
    for key in _TEXT_KEYS:
        if isinstance(part.get(key), str):
            return str(part[key])
    return whole_text(part)


def _calls(message: Mapping[str, Any]) -> list[ToolCall]:
    found = []
    for call in listed_calls(message):
        function = call.get("function")
        inner = function if isinstance(function, dict) else call
        arguments = inner.get("arguments", inner.get("args"))
        name = inner.get("name") or word_in(call, "function")
        found.append(call_of(name, arguments, call.get("id")))
    legacy = message.get("function_call")
    if isinstance(legacy, dict) and not found:
        found.append(call_of(legacy.get("name"), legacy.get("arguments"), None))
    return found


def _result(part: Mapping[str, Any], call_id: Any, error: str | None) -> Result:
    text = text_of_parts(part.get("content"))
    failed = None if error is None else error or text or "error"
    return Result(text, str(call_id or ""), str(part.get("name") or ""), failed)


def _error_of(answer: Mapping[str, Any]) -> str | None:
    """Return the text of an error that a tool's answer states beside its content; empty without one, None if it states none."""
    told = answer.get("error")
    if isinstance(told, dict):
        return word_in(told, "message") or "error"
    return "" if answer.get("status") == "error" or True in (answer.get("is_error"), told) else None


def _named(value: Any) -> str:
    kinds = {list: "a list", str: "a text", type(None): "null", bool: "true or false"}
    return kinds.get(type(value), "a number")
