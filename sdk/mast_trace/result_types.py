"""Types of tool results, and values that are rebuilt from their recorded texts.

A recorded result is text: ``750.0`` may have been a number or a string. The type is recorded for results
that the program itself receives, so that a replay can return an equal value.
"""

from __future__ import annotations

import contextlib
import json
from typing import Any, Final

_JSON: Final = {
    type(None): "null",
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "string",
    list: "array",
    dict: "object",
}
_OPAQUE: Final = "opaque "


def result_type(value: Any, text: str) -> str:
    """Return JSON's name of a value's type, or ``opaque`` with the name of a type that JSON lacks.

    Args:
        value: the result.
        text: its recorded text; where it does not spell the value, the result is opaque, too.
    """
    kind = type(value)
    name = _JSON.get(kind, "")
    # A value of the program's own may raise anything when compared.
    with contextlib.suppress(Exception):
        if name and _spells(text, value):
            return name
    return f"{_OPAQUE}{kind.__name__}"


def opaque_type(name: str) -> str:
    """Return the type's name if a recorded type is opaque, else nothing."""
    return name.removeprefix(_OPAQUE) if name.startswith(_OPAQUE) else ""


def value_of(text: str, name: str) -> Any:
    """Return the value of a recorded text; the text itself for strings and unknown types.

    Args:
        text: the recorded result.
        name: its recorded type, which is not opaque.
    """
    if name == "null":
        return None
    return text if name in {"", "string"} else json.loads(text)


def _spells(text: str, value: Any) -> bool:
    """Return whether a text stands for a value of one of JSON's types."""
    if value is None or isinstance(value, str):
        return text == (value or "")
    return _same(json.loads(text), value)


def _same(read: Any, value: Any) -> bool:
    """Return whether two values are equal, and their numbers and truth values of the same types."""
    if type(read) is not type(value):
        return False
    if isinstance(read, list):
        return len(read) == len(value) and all(map(_same, read, value))
    if isinstance(read, dict):
        return read.keys() == value.keys() and all(
            _same(each, value[key]) for key, each in read.items()
        )
    return bool(read == value)
