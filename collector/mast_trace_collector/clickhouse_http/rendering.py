"""Tokens of a statement as the engine renders it after parsing.

No comment, escape or odd spacing is left in such a text. It is taken apart here to move clauses and to
put values in; what comes of that is parsed by the engine once more, and checked.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_TOKEN = re.compile(
    r"""
    (?P<string>'(?:[^'\\]|\\.|'')*')
  | (?P<parameter>\{[^{}']*\})
  | `(?P<backquoted>(?:[^`\\]|\\.|``)*)`
  | "(?P<quoted>(?:[^"\\]|\\.|"")*)"
  | (?P<word>[A-Za-z_]\w*)
  | (?P<other>\S)
    """,
    re.VERBOSE | re.DOTALL,
)
_OPEN, _CLOSE = frozenset("([{"), frozenset(")]}")


@dataclass(frozen=True)
class Token:
    """One token.

    Attributes:
        text: as it stands there.
        start: offset of its first character.
        end: offset behind its last character.
        depth: brackets that are open around it.
        word: the text, if it is a word without quotes; else empty.
        name: what it names, quoted or not; empty if it is no name.
        parameter: what stands between the braces of ``{name:Type}``; else empty.
    """

    text: str
    start: int
    end: int
    depth: int
    word: str = ""
    name: str = ""
    parameter: str = ""


def tokens(text: str) -> list[Token]:
    """Return the tokens of a rendered statement."""
    found, depth = [], 0
    for match in _TOKEN.finditer(text):
        depth -= match[0] in _CLOSE
        quoted = match["backquoted"] or match["quoted"] or ""
        found.append(
            Token(
                text=match[0],
                start=match.start(),
                end=match.end(),
                depth=depth,
                word=match["word"] or "",
                name=match["word"] or re.sub(r"\\(.)|``", lambda m: m[1] or "`", quoted),
                parameter=(match["parameter"] or "")[1:-1],
            )
        )
        depth += match[0] in _OPEN
    return found


def replaced(text: str, changes: Iterable[tuple[Token, str]]) -> str:
    """Return the text with other words in the place of some tokens."""
    parts, at = [], 0
    for token, new in changes:
        parts += [text[at : token.start], new]
        at = token.end
    return "".join([*parts, text[at:]])


def quoted(name: str) -> str:
    """Return a name in backquotes."""
    escaped = name.replace("\\", "\\\\").replace("`", "\\`")
    return f"`{escaped}`"


def literal_of_bytes(data: bytes) -> str:
    """Quote bytes, which may be no UTF-8, for SQL."""
    plain = "".join(
        chr(byte) if 32 <= byte < 127 and byte not in b"'\\" else f"\\x{byte:02X}" for byte in data
    )
    return f"'{plain}'"
