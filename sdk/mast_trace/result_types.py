"""Types of tool results and of their exceptions, and values that are rebuilt from their recorded texts.

A recorded result is text: ``750.0`` may have been a number or a string. The type is recorded for results
that the program itself receives, so that a replay can return an equal value; that of an exception, so that the
program's own ``except`` catches it.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import json
import sys
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

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
BLOCK: Final = f"{_OPAQUE}block"
"""The type where the code stands in a block of the program, which receives no result."""
_RAISES: Final = "raises "
_BASES: Final = " < "


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


def exception_type(error: BaseException) -> str:
    """Return ``raises``, the path of an exception's class, and the builtin classes that it derives from."""
    kind = type(error)
    mro = [each for each in kind.__mro__ if vars(builtins).get(each.__name__) is each]
    nearest = [
        each for each in mro if not any(issubclass(other, each) for other in mro[: mro.index(each)])
    ]
    names = [f"{kind.__module__}.{kind.__qualname__}", *(each.__name__ for each in nearest)]
    return _RAISES + _BASES.join(names)


def exception_of(text: str, name: str) -> Exception | None:
    """Return an exception of a recorded type with a recorded text; None if no type of one was recorded.

    Its class derives from the recorded one where that is builtin or stands in a module that the program has loaded, else
    from the recorded builtin ones. Nothing is imported because a record names it, and no constructor of such a module is called: an attribute
    that it would have set is missing, and says so.
    """
    path, *names = name.removeprefix(_RAISES).split(_BASES)
    if not name.startswith(_RAISES):
        return None
    loaded = _loaded(path)
    bases = [loaded] if loaded else [kind for each in names if (kind := _builtin(each))]
    module, _, title = path.rpartition(".")

    def missing(_self: Exception, attribute: str) -> Any:
        raise AttributeError(
            f"The record holds the text of {path} alone, and not its attribute {attribute!r}."
        )

    members = {"__module__": module, "__str__": lambda _self: text, "__getattr__": missing}
    given = _argument(text, bases)
    with contextlib.suppress(Exception):  # a builtin class may need other arguments
        if loaded and module == builtins.__name__ and str(plain := loaded(given)) == text:
            return plain
    try:
        made: Any = type(title, tuple(bases or [Exception]), members)
        raised: Exception = made.__new__(made, given)
    except Exception:  # noqa: BLE001  # a class of the program's own may refuse to be derived from
        return None
    return raised


def _argument(text: str, bases: Sequence[type[Exception]]) -> Any:
    """Return the argument of an exception with a text: a `KeyError` says how its key is spelled, not the key."""
    with contextlib.suppress(Exception):
        if any(each.__str__ is KeyError.__str__ for each in bases):
            return ast.literal_eval(text)
    return text


def _builtin(name: str) -> type[Exception] | None:
    kind = vars(builtins).get(name)
    return kind if isinstance(kind, type) and issubclass(kind, Exception) else None


def _loaded(path: str) -> type[Exception] | None:
    """Return the class of a path if its module is loaded; modules' own `__getattr__` may import, so it is not asked."""
    parts = path.split(".")
    for end in range(len(parts) - 1, 0, -1):
        found: Any = sys.modules.get(".".join(parts[:end]))
        for part in parts[end:]:
            found = getattr(found, "__dict__", {}).get(part)
        if isinstance(found, type) and issubclass(found, Exception):
            return found
    return None


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
