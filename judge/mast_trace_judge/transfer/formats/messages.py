"""Reads one message of the shapes in which chats are kept.

They are OpenAI's, Anthropic's, LangChain's, AG2's and ShareGPT's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mast_trace.messages import ToolCall
from mast_trace.trajectory.span_messages import (
    ANSWER,
    ARGUMENTS,
    listed_calls,
    normal_part,
    objects,
)
from mast_trace_judge.transfer.formats.conversation import Entry, Result
from mast_trace_judge.transfer.formats.kinds import (
    bare_result,
    moment_or_zero,
    usage_of,
    whole_text,
    word_in,
)
from mast_trace_judge.transfer.formats.libraries import unwrapped

ROLES: Mapping[str, str] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "human": "user",
    "assistant": "assistant",
    "ai": "assistant",
    "gpt": "assistant",
    "gemini": "assistant",
    "model": "assistant",
    "AIMessageChunk": "assistant",
    "tool": "tool",
    "function": "tool",
    "ipython": "tool",
    "observation": "tool",
}
"""A role, or LangChain's type of a message -> our role."""
_USAGE = ("usage", "usage_metadata", "models_usage", "tokens", "metrics")
_NAMES = ("name", "agent", "assistant_id")
_TEXT_KEYS = ("text", "content", "refusal")
_SILENT = frozenset({"thinking", "redacted_thinking", "reasoning", "step-start"})
"""Parts that only the model itself sees, and marks between its steps."""
_EMPTY = {"content", "tool_responses"}
"""Keys that a message without any text has."""
_DONE = ("toolInvocations", "toolCalls")
"""Keys beside the content of calls that stand with their results, in Vercel's AI SDK and in Gemini CLI."""


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
    listed = _calls(message)
    texts, calls, results = _content(message, listed)
    calls += listed
    if role == "tool" and not results:
        told = objects(message.get("tool_responses")) or [{**message, "content": "\n".join(texts)}]
        error = _error_of(message)
        results += [
            _result(each, each.get("tool_call_id"), error, each.get("content")) for each in told
        ]
    spoken = role != "tool" and not (results and not any(texts))
    return Entry(
        role=role,
        agent=str(next((message[key] for key in _NAMES if message.get(key)), role)),
        text="\n".join(texts) if spoken else "",
        calls=tuple(calls),
        results=tuple(results),
        time=moment_or_zero(message.get("timestamp") or message.get("created_at")),
        usage=_usage_of(message),
    )


def _usage_of(message: Mapping[str, Any]) -> tuple[int, int] | None:
    told = [message[key] for key in _USAGE if key in message]
    meta = message.get("meta")  # Haystack's, and of Semantic Kernel
    told += [meta.get("usage"), meta.get("Usage")] if isinstance(meta, dict) else []
    return next(filter(None, map(usage_of, told)), None)


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


def _content(
    message: Mapping[str, Any], asked: Sequence[ToolCall]
) -> tuple[list[str], list[ToolCall], list[Result]]:
    """Return texts, tool calls and tool results in the content, without the calls that are listed beside it."""
    content = message.get("content", message.get("parts"))
    done = [each for key in _DONE for each in objects(message.get(key))]
    if content is None and not (message.keys() & _EMPTY or done or asked):
        raise ValueError("it has no content")
    texts: list[str] = []
    calls: list[ToolCall] = []
    results: list[Result] = []
    listed = {call.id for call in asked}
    if not isinstance(content, list):
        texts += [text] if (text := text_of_parts(content)) else []
        content = []
    for given in content:
        part = normal_part(given) if isinstance(given, dict) else given
        kind = word_in(part, "type")
        if kind == "tool_call":
            if part.get("id") not in listed:
                arguments = next((part[key] for key in ARGUMENTS if key in part), None)
                calls.append(call_of(part.get("name"), arguments, part.get("id")))
        elif kind == ANSWER:
            results.append(
                _result(
                    part, part.get("id"), _error_of(part), part.get("response", part.get("result"))
                )
            )
        elif isinstance(part, dict) and "toolCallId" in part:
            done.append(part)
        else:
            part_text = _text_of(part)
            texts += [] if part_text is None else [part_text]
    for each in done:
        call, result = _done(each)
        calls.append(call)
        results += [result] if result else []
    return texts, calls, results


def _done(part: Mapping[str, Any]) -> tuple[ToolCall, Result | None]:
    """Return a call and its result, which stand together."""
    found = {name: part[key] for name, keys in _OF_DONE.items() for key in keys if part.get(key)}
    title = found.get("name") or word_in(part, "type").removeprefix("tool-")
    call = call_of(title, found.get("arguments"), found.get("id"))
    if not found.keys() & {"result", "error"}:
        return call, None
    error = str(found["error"]) if "error" in found else _error_of(part)
    given = objects(found.get("result"))
    said = normal_part(given[0]).get("response") if len(given) == 1 else None
    return call, _result(part, call.id, error, said or found.get("result"))


_OF_DONE = {
    "id": ("toolCallId", "id"),
    "name": ("toolName", "name"),
    "arguments": ("input", "args"),
    "result": ("output", "result"),
    "error": ("errorText",),
}


def _text_of(part: Any) -> str | None:
    """Return the text of a part; None where it is not for others to read."""
    if isinstance(part, str):
        return part
    if not isinstance(part, dict):
        return whole_text(part)
    if word_in(part, "type") in _SILENT:
        return None
    for key in _TEXT_KEYS:
        inner = part.get(key)
        if isinstance(text := inner.get("value") if isinstance(inner, dict) else inner, str):
            return text
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


def _result(part: Mapping[str, Any], call_id: Any, error: str | None, said: Any) -> Result:
    text = text_of_parts(bare_result(said))
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
