"""Items of OpenAI's Responses API, which the Agents SDK keeps as well."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mast_trace_judge.transfer.formats.chat import entries_of, named_within
from mast_trace_judge.transfer.formats.conversation import Entry, Result, transcript_of
from mast_trace_judge.transfer.formats.kinds import (
    Format,
    Transcript,
    usage_of,
    whole_text,
    word_in,
)
from mast_trace_judge.transfer.formats.messages import call_of, entry_of, text_of_parts

_ASKED = frozenset({"function_call", "custom_tool_call"})
_ANSWERED = frozenset({"function_call_output", "custom_tool_call_output"})
_REASONING = "reasoning"
_SILENT = frozenset({_REASONING, "mcp_list_tools", "compaction"})
_RESULTS = ("output", "results", "outputs", "result")
_ARGUMENTS = ("action", "queries", "code", "arguments", "input")


def _is_item(value: Any) -> bool:
    """Return whether a value is an item that no chat holds; a chat's messages stand beside them."""
    if not isinstance(value, dict):
        return False
    kind = word_in(value, "type")
    if kind in _ASKED | _ANSWERED:
        return "call_id" in value
    if kind == "message" and "role" in value:
        parts = value.get("content")
        return isinstance(parts, list) and any(_is_part(part) for part in parts)
    return (kind == _REASONING and "summary" in value) or _is_hosted(value)


def is_reasoning(value: Any) -> bool:
    """Return whether an item holds content that only the model sees, or none."""
    return word_in(value, "type") in _SILENT


def _is_part(part: Any) -> bool:
    return word_in(part, "type") in {"output_text", "input_text"}


def _is_hosted(value: dict[str, Any]) -> bool:
    """Return whether an item is the call of a tool that runs at the provider's, with its result."""
    return (
        str(value.get("type", "")).endswith("_call")
        and ("status" in value or "server_label" in value)
        and ("id" in value or "call_id" in value)
    )


def item_entry(value: Any) -> Entry:
    """Read an item.

    Raises:
        ValueError: it is none; the text names the missing part.
    """
    kind = word_in(value, "type")
    if kind in _ASKED:
        call = call_of(
            value.get("name"), value.get("arguments", value.get("input")), value.get("call_id")
        )
        return Entry("assistant", "assistant", calls=(call,))
    if kind in _ANSWERED:
        text = text_of_parts(value.get("output"))
        return Entry("tool", "tool", results=(Result(text, str(value.get("call_id") or "")),))
    if isinstance(value, dict) and _is_hosted(value):
        tool = word_in(value, "name") or str(kind).removesuffix("_call")
        given = {key: value[key] for key in _ARGUMENTS if value.get(key) is not None}
        found = {key: value[key] for key in _RESULTS if value.get(key) is not None}
        arguments = next(iter(given.values())) if len(given) == 1 else given or None
        identity = str(value.get("call_id") or value["id"])
        call = call_of(tool, arguments, identity)
        failed = str(value["status"]) if value.get("status") == "failed" else None
        failed = whole_text(value["error"]) if value.get("error") else failed
        text = text_of_parts(next(iter(found.values()), None))
        result = Result(text, identity, error=failed)
        # The output of a local shell is an item of its own.
        told = () if kind == "local_shell_call" else (result,)
        return Entry("assistant", "assistant", calls=(call,), results=told)
    return entry_of(value)


def _read(value: Any, name: str) -> Iterator[Transcript]:
    items: list[Any] = value if isinstance(value, list) else _items(value)
    visible = [item for item in items if not is_reasoning(item)]
    known = value if isinstance(value, dict) else {}
    yield transcript_of(
        entries_of(visible, item_entry),
        named_within(value, name),
        model=word_in(known, "model"),
        usage=usage_of(known.get("usage")),
        begun=known.get("created_at"),
    )


def _items(value: dict[str, Any]) -> list[Any]:
    """Return the items of a response after those that it answers, where both are given."""
    given = value.get("input")
    asked = [{"role": "user", "content": given}] if isinstance(given, str) else given or []
    system = value.get("instructions")
    system_message = (
        [{"role": "system", "content": system}] if isinstance(system, str) and system else []
    )
    return [
        *system_message,
        *(asked if isinstance(asked, list) else []),
        *(value.get("output") or []),
    ]


def _is_response(value: Any) -> bool:
    if not isinstance(value, dict) or not isinstance(value.get("output"), list):
        return False
    return value.get("object") == "response" or any(map(_is_item, value["output"]))


RESPONSES = Format(
    name="responses",
    title="OpenAI Responses items",
    recognised="items such as `function_call` and `function_call_output`, or a response with "
    "`output`",
    read=_read,
    record=_is_response,
    message=_is_item,
    entry=lambda item: None if is_reasoning(item) else item_entry(item),
)
