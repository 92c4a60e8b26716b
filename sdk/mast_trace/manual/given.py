"""Reads the arguments of the functions for hand-made agents leniently.

No function in here raises, whatever its argument. A value of a wrong type is kept as its text, and
the log mentions it once.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import islice
from typing import Any, Final

from mast_trace.content import as_text, is_a
from mast_trace.messages import Message, ToolCall
from mast_trace.spans.guard import misused

UNKNOWN: Final = "unknown"
_MOST_RECIPIENTS = 1000
_LARGEST = 2**63 - 1  # range of an integer attribute


def text(value: Any) -> str:
    """Return any value as text."""
    return as_text(value)


def word(value: Any, call: str, what: str) -> str | None:
    """Return a name or an id as text, None where it is absent.

    Args:
        value: the argument.
        call: name of the function, for the log.
        what: name of the parameter, for the log.
    """
    if value is None or type(value) is str:
        return value
    if not is_a(value, str):
        misused(call, f"{what} is no text but {type(value).__name__}; its text is recorded")
    return text(value)


def words(value: Any, call: str, what: str) -> list[str]:
    """Return one name or several as a list."""
    if value is None:
        return []
    if is_a(value, str):
        return [text(value)]
    try:
        items = list(islice(value, _MOST_RECIPIENTS))
    except Exception:  # noqa: BLE001  # no names, or an iteration that fails
        return [word(value, call, what) or ""]
    return [word(item, call, what) or UNKNOWN for item in items]


def message(content: Any, role: str) -> Message:
    """Return a text, or any value, as a message."""
    if not is_a(content, Message):
        return Message(text(content), role=role)
    calls = content.tool_calls
    if _is_sound(content):
        return content  # type: ignore[no-any-return]
    several = calls if is_a(calls, list | tuple) else () if calls is None else (calls,)
    return Message(
        text(content.content),
        role=text(content.role) if content.role is not None else role,
        name=None if content.name is None else text(content.name),
        id=None if content.id is None else text(content.id),
        tool_calls=tuple(_tool_call(call) for call in several),
        tool_call_id=None if content.tool_call_id is None else text(content.tool_call_id),
    )


def messages(content: Any, role: str) -> list[Message]:
    """Return a text, a message, or a list of these as messages."""
    if content is None:
        return []
    several = is_a(content, list | tuple)
    try:
        return [message(item, role) for item in (content if several else (content,))]
    except Exception:  # noqa: BLE001  # a list of the program's own whose iteration fails
        return [message(text(content), role)]


def attributes(value: Any, call: str) -> dict[str, Any] | None:
    """Return attributes of the program's own; a value that no attribute can hold as its text."""
    if value is None:
        return None
    if not is_a(value, Mapping):
        misused(call, f"attributes is no mapping but {type(value).__name__}; they are left out")
        return None
    try:
        return {
            name if type(name) is str else text(name): _attribute(item)
            for name, item in value.items()
        }
    except Exception:  # noqa: BLE001  # a mapping whose iteration fails
        misused(call, f"attributes of {type(value).__name__} cannot be read; they are left out")
        return None


def _attribute(value: Any) -> Any:
    if value is None or _is_plain(value):
        return value
    is_list = type(value) in {list, tuple} and len({type(item) for item in value}) < 2
    return value if is_list and all(_is_plain(item) for item in value) else text(value)


def _is_plain(value: Any) -> bool:
    kind = type(value)
    if kind is int:
        return bool(-_LARGEST <= value <= _LARGEST)
    return kind in {str, bool} or (kind is float and math.isfinite(value))


def _is_sound(given: Message) -> bool:
    """Return whether the fields of a message have their types."""
    plain = (given.content, given.role, given.name, given.id, given.tool_call_id)
    return (
        all(value is None or type(value) is str for value in plain)
        and given.content is not None
        and given.role is not None
        and type(given.tool_calls) is tuple
        and all(
            type(call) is ToolCall
            and type(call.name) is str
            and (call.id is None or type(call.id) is str)
            for call in given.tool_calls
        )
    )


def _tool_call(call: Any) -> ToolCall:
    if not is_a(call, ToolCall):
        return ToolCall(text(call))
    return ToolCall(text(call.name), call.arguments, None if call.id is None else text(call.id))
