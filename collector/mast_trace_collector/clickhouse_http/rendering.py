"""Tokens of a statement as the engine renders it after parsing.

No comment, escape or odd spacing is left in such a text. It is split here to move clauses and to
insert values; the engine parses the result once more, and it is checked again.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

_TOKEN = re.compile(
    r"""
    (?P<word>[A-Za-z_]\w*)
  | (?P<string>'(?:[^'\\]|\\.|'')*')
  | (?P<parameter>\{\w+:(?:[^{}']|'(?:[^'\\]|\\.)*')*\})
  | (?P<name>`(?:[^`\\]|\\.|``)*`|"(?:[^"\\]|\\.|"")*")
  | (?P<open>[(\[{]) | (?P<close>[)\]}])
  | (?P<number>[\d.]+)
  | (?P<sign>\S)
    """,
    re.VERBOSE | re.DOTALL,
)


class Token(NamedTuple):
    """One token.

    Attributes:
        kind: word, name (in quotes), string, parameter, number, open, close or sign.
        text: of the token, unchanged.
        start: offset of its first character.
        depth: brackets that are open around it.
    """

    kind: str
    text: str
    start: int
    depth: int

    @property
    def end(self) -> int:
        """Offset after its last character."""
        return self.start + len(self.text)

    @property
    def word(self) -> str:
        """The text, if it is a word without quotes; else empty."""
        return self.text if self.kind == "word" else ""

    @property
    def name(self) -> str:
        """The name that it spells, quoted or not; empty if it is no name."""
        if self.kind == "name":
            return re.sub(r"\\(.)|``", lambda match: match[1] or "`", self.text[1:-1])
        return self.word


def tokens(text: str) -> list[Token]:
    """Return the tokens of a rendered statement."""
    found, depth = [], 0
    for match in _TOKEN.finditer(text):
        kind = str(match.lastgroup)
        depth -= kind == "close"
        found.append(Token(kind, match[0], match.start(), depth))
        depth += kind == "open"
    return found


def replaced(text: str, changes: Iterable[tuple[Token, str]]) -> str:
    """Return the text with some tokens replaced; the replacements are in the order of the text."""
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
    """Quote bytes, which may be invalid UTF-8, for SQL."""
    plain = "".join(
        chr(byte) if 32 <= byte < 127 and byte not in b"'\\" else f"\\x{byte:02X}" for byte in data
    )
    return f"'{plain}'"
