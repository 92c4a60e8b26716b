r"""Texts that a text holds: what JSON says in it, and what its escapes stand for.

A newline in JSON is spelled ``\n``, so that a number after it reads as the end of a word.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from mast_trace.messages import parsed
from mast_trace_judge.local.addressing.cleaning import clean

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_ESCAPE = re.compile(r'(?:\\u[0-9a-fA-F]{4})+|\\["\\/bfnrt]')
_STANDS_FOR: Final = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_DEEPEST: Final = 6
"""Levels of escapes that are read: JSON within JSON has one more at each level."""
_ANSWER: Final = {"text", "tool_calls"}


def texts_in(text: str) -> list[str]:
    """Return a text and, if it is JSON, all its strings, keys, numbers and truth values, each once.

    A string that is JSON itself, such as the arguments of a call, is read likewise.
    """
    return list(dict.fromkeys([text, *_leaves(parsed(text))]))


def said_in(answer: str) -> list[str]:
    """Return the texts of an answer, with its calls if it is given as JSON, without that form's keys."""
    shape = parsed(answer)
    if isinstance(shape, dict) and "tool_calls" in shape and not set(shape) - _ANSWER:
        calls = shape["tool_calls"] if isinstance(shape["tool_calls"], list) else []
        given = [list(call.values()) if isinstance(call, dict) else call for call in calls]
        shape = [shape.get("text"), given]
    return [each for each in dict.fromkeys(_leaves(shape)) if each.strip()]


def spelled_out(texts: Iterable[str]) -> list[str]:
    """Return texts, each also with JSON's escapes decoded wherever they stand, and as one sees it."""
    found: dict[str, None] = {}
    for text in texts:
        read = text
        for _ in range(_DEEPEST):
            found[read] = found[clean(read)] = None
            if "\\" not in read or (decoded := _ESCAPE.sub(_decoded, read)) == read:
                break
            read = decoded
        else:
            found[read] = found[clean(read)] = None
    return list(found)


def _leaves(value: Any) -> Iterator[str]:
    """Yield what JSON says, in order, without null; nesting is no recursion, for it may be deep."""
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, dict):
            waiting += [part for pair in reversed(each.items()) for part in reversed(pair)]
        elif isinstance(each, list):
            waiting += reversed(each)
        elif isinstance(each, str):
            yield each
            inner = parsed(each)
            if inner != each:
                waiting.append(inner)
        elif isinstance(each, bool):
            yield str(each).lower()
        elif isinstance(each, int | float):
            yield _number(each)


def _number(value: float) -> str:
    """Return a number with all its digits, without an exponent."""
    spelled = repr(value)
    return format(Decimal(spelled), "f") if "e" in spelled else spelled


def _decoded(found: re.Match[str]) -> str:
    escape = found[0]
    if not escape.startswith("\\u"):
        return _STANDS_FOR.get(escape[1], escape[1])
    units = bytes.fromhex(escape.replace("\\u", ""))
    return units.decode("utf-16-be", "replace")
