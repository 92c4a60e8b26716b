"""Parts of OpenAI's answers beside text and calls; see `mast_trace_instrumentations.model_calls.extras`."""

from __future__ import annotations

from typing import Any, Final

from mast_trace_instrumentations.model_calls import field
from mast_trace_instrumentations.model_calls.extras import CHARS, left, plain
from mast_trace_instrumentations.openai.requests import text_of

_OF_MESSAGE: Final = ("role", "content", "tool_calls", "function_call", "parsed")
_OF_ITEM: Final = ("content", "arguments", "name", "call_id", "parsed", "parsed_arguments")
_OF_PART: Final = ("text", "parsed")
_USUAL: Final = {"type", "id", "status"}
_CALL, _MESSAGE, _TEXT = "function_call", "message", "output_text"


def chat_extra(message: Any) -> dict[str, Any]:
    """Return the extra of a message of Chat Completions, such as its refusal; empty without any."""
    found = left(message, _OF_MESSAGE)
    return {"message": found} if found else {}


class ChatExtra:
    """Assembles the extra of a streamed message from its deltas: texts and lists are continued."""

    def __init__(self) -> None:
        self._found: dict[str, Any] = {}

    def add(self, delta: Any) -> None:
        """Take the next delta."""
        for key, value in left(delta, _OF_MESSAGE).items():
            before = self._found.get(key)
            same = isinstance(before, str | list) and type(before) is type(value)
            self._found[key] = before + value if same else value

    def extra(self) -> dict[str, Any]:
        """Return the extra so far."""
        return {"message": self._found} if self._found else {}


def responses_extra(output: Any) -> dict[str, Any]:
    """Return the items of a response's output in order, texts and calls aside.

    It is empty where the output is at most one message of one text, followed by calls, which say it all.
    """
    items = [_item(each) for each in output or ()]
    messages = [each for each in items if each.get("type") == _MESSAGE]
    is_plain = all(_is_plain(each) for each in items) and messages == items[:1][: len(messages)]
    return {} if is_plain else {"output": items}


def _is_plain(item: dict[str, Any]) -> bool:
    """Return whether an item is a call, or a message of at most one text, and nothing else is known of it."""
    if item.get("type") == _CALL:
        return set(item) <= _USUAL
    parts = item.get("content", ())
    if item.get("type") != _MESSAGE or set(item) - {*_USUAL, "role", "content"} or len(parts) > 1:
        return False
    return all(part == {"type": _TEXT, CHARS: part[CHARS]} for part in parts)


def _item(item: Any) -> dict[str, Any]:
    kind = field(item, "type")
    if kind == _MESSAGE:
        return left(item, _OF_ITEM) | {
            "content": [_part(each) for each in field(item, "content") or ()]
        }
    if kind == _CALL:
        return left(item, _OF_ITEM)
    whole = plain(item)
    return whole if isinstance(whole, dict) else {}


def _part(part: Any) -> dict[str, Any]:
    kept = left(part, _OF_PART)
    refusal = kept.pop("refusal", None)
    return kept | {CHARS: len(refusal if isinstance(refusal, str) else text_of([part]))}
