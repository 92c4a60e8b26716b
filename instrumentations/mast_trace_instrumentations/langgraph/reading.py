"""LangChain's messages, read into `Message`, and found in the input and output of nodes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from itertools import islice
from typing import Any

from mast_trace.content import as_text, joined
from mast_trace.messages import Message, ToolCall

_ROLES = {"human": "user", "ai": "assistant", "function": "tool", "developer": "system"}
_CALL_BLOCKS = frozenset({"tool_use", "tool_call", "function_call", "input_json_delta"})
_MAX_LEAVES = 64
_MAX_ITEMS = 256
_MAX_DEPTH = 6
_SYNTHETIC_MARK = "__is_handoff_back"
OUT_OF_STEPS = "Sorry, need more steps to process this request."
"""The answer of `create_react_agent` when the recursion limit is near, instead of an error."""

_message_types: dict[type, bool] = {}


def is_message(value: Any) -> bool:
    """Return whether ``value`` is one of LangChain's messages, judged by its class without importing it."""
    kind = type(value)
    known = _message_types.get(kind)
    if known is None:
        known = _message_types[kind] = any(
            base.__name__ == "BaseMessage" and base.__module__.startswith("langchain_core")
            for base in kind.__mro__
        )
    return known


def read(message: Any) -> Message:
    """Read one of LangChain's messages.

    Its fields are taken from pydantic's own storage: a look-up of a field that a kind of message
    does not have costs more than all the rest.
    """
    given = vars(message)
    return Message(
        content=text_of(given["content"]),
        role=_role(message),
        name=given.get("name"),
        id=given.get("id"),
        tool_calls=_tool_calls(given),
        tool_call_id=given.get("tool_call_id"),
    )


def _role(message: Any) -> str:
    kind: str = message.type
    role = _ROLES.get(kind)
    if role is not None:
        return role
    kind = kind.removesuffix("MessageChunk").lower()
    if kind == "chat":
        return str(message.role)
    return _ROLES.get(kind, kind)


def _tool_calls(given: Mapping[str, Any]) -> tuple[ToolCall, ...]:
    """Return the calls that a message asks for, calls whose arguments are no JSON included."""
    calls = given.get("tool_calls")
    invalid = given.get("invalid_tool_calls")
    if not calls and not invalid:
        return ()
    return tuple(
        ToolCall(str(call.get("name") or ""), call.get("args"), call.get("id"))
        for call in (*(calls or ()), *(invalid or ()))
    )


def text_of(content: Any) -> str:
    """Return the text of a message's content; other parts than text and tool calls as JSON."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return as_text(content)
    pieces: list[str] = []
    for block in content:
        if isinstance(block, str):
            pieces.append(block)
        elif isinstance(block, Mapping):
            kind = block.get("type")
            if kind in _CALL_BLOCKS:
                continue
            text = block.get("text")
            pieces.append(text if isinstance(text, str) else as_text(block))
    return joined("", pieces)


def is_synthetic(message: Any) -> bool:
    """Return whether the framework wrote the message in an agent's name."""
    metadata = getattr(message, "response_metadata", None) or {}
    return _SYNTHETIC_MARK in metadata or message.content == OUT_OF_STEPS


def messages_in(state: Any) -> list[Any]:
    """Return the LangChain messages in a node's input or in a state, in order."""
    if state is None or isinstance(state, str):
        return []
    if is_message(state):
        return [state]
    if isinstance(state, dict):
        if "tool_call" in state and "state" in state:
            return messages_in(state["state"])  # the input that create_agent sends to its tool node
        values: Iterable[Any] = state.values()
    elif isinstance(state, list | tuple):
        values = (state,)
    else:
        values = _values(state)
    found: list[Any] = []
    for value in values:
        if isinstance(value, list | tuple):
            known = _message_types  # a history costs no call for each message
            found.extend([item for item in value if known.get(type(item)) or is_message(item)])
        elif is_message(value):
            found.append(value)
    return found


def _values(state: Any) -> Iterator[Any]:
    for _, value in _named_values(state) or ():
        yield value


def shorthand(given: Any) -> list[Message]:
    """Read other inputs that a program may pass instead of messages: pairs, mappings and plain text."""
    if isinstance(given, str):
        return [Message(given, role="user")]
    if isinstance(given, Mapping) and ("role" in given or "type" in given) and "content" in given:
        spelled = str(given.get("role") or given.get("type"))
        role = _ROLES.get(spelled, spelled)
        return [Message(text_of(given["content"]), role, given.get("name"), given.get("id"))]
    if isinstance(given, tuple) and len(given) == 2 and all(isinstance(g, str) for g in given):
        return [Message(str(given[1]), role=_ROLES.get(str(given[0]), str(given[0])))]
    if isinstance(given, list | tuple):
        return [message for item in given for message in _item(item)]
    return []


def _item(item: Any) -> list[Message]:
    return [read(item)] if is_message(item) else shorthand(item)


def written_shorthand(channel: str, value: Any) -> list[Message]:
    """Read messages that a node writes as pairs or mappings; a plain text is one in ``messages``."""
    items = value if isinstance(value, list) else [value]
    if not all(
        (isinstance(item, Mapping) and "content" in item and ("role" in item or "type" in item))
        or (isinstance(item, tuple) and channel == "messages")
        or (isinstance(item, str) and channel == "messages")
        for item in items
    ):
        return []
    return [message for item in items for message in shorthand(item)]


def leaves(state: Any) -> list[Message]:
    """Read a state that holds no messages: each of its texts as one, so that no text appears twice."""
    return [Message(text, role="user") for text in leaf_texts(state)]


def leaf_texts(value: Any) -> list[str]:
    """Return the first texts anywhere in ``value``, each once."""
    return list(dict.fromkeys(islice(_leaf_texts(value, 0), _MAX_LEAVES)))


def _leaf_texts(value: Any, depth: int) -> Iterator[str]:
    if isinstance(value, str):
        if value:
            yield value
    elif depth < _MAX_DEPTH:
        inner = value if isinstance(value, list | tuple | set | frozenset) else _values(value)
        for item in inner:
            yield from _leaf_texts(item, depth + 1)


def update_text(update: Mapping[str, Any]) -> str:
    """Render a node's output that is no message: a single text alone, anything else as JSON."""
    filled = {name: value for name, value in update.items() if not _is_empty(value)}
    if not filled:
        return ""
    only = _alone(next(iter(filled.values()))) if len(filled) == 1 else None
    return only if isinstance(only, str) else as_text(_plain(filled, 0))


def value_text(value: Any) -> str:
    """Render a value without a name, such as a function's result, as `update_text` does."""
    if _is_empty(value):
        return ""
    only = _alone(value)
    return only if isinstance(only, str) else as_text(_plain(value, 0))


def _alone(value: Any) -> Any:
    return value[0] if isinstance(value, list | tuple) and len(value) == 1 else value


def _is_empty(value: Any) -> bool:
    # Not by comparison: arrays and data frames compare item by item.
    return value is None or (isinstance(value, str | list | tuple | Mapping | set) and not value)


def _plain(value: Any, depth: int) -> Any:
    """Copy the top of a value into JSON types; objects of the program become their names."""
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if depth >= _MAX_DEPTH:
        return "..."
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(item, depth + 1) for item in islice(value, _MAX_ITEMS)]
    named = _named_values(value)
    if named is None:
        return f"<{type(value).__name__}>"
    return {str(name): _plain(item, depth + 1) for name, item in islice(named, _MAX_ITEMS)}


def _named_values(value: Any) -> Iterable[tuple[Any, Any]] | None:
    if isinstance(value, Mapping):
        return list(value.items())
    if is_dataclass(value) and not isinstance(value, type):
        return ((field.name, getattr(value, field.name, None)) for field in fields(value))
    if hasattr(type(value), "model_fields"):
        pairs: Iterable[tuple[str, Any]] = vars(value).items()
        return pairs
    return None
