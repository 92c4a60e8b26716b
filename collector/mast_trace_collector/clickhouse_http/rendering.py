"""Tokens of a statement as the engine renders it after parsing.

No comment, escape or odd spacing is left in such a text. It is split here to move clauses and to
insert values; the engine parses the result once more, and it is checked again.

The tree that the engine parses a statement into, as ``EXPLAIN AST`` writes it.

Nothing is executed for it, and no constant is folded. Each line is a node, indented below its
parent; an unexpected line makes the whole tree unreadable, and the statement is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from mast_trace_collector.clickhouse_http.errors import denied
from mast_trace_collector.otlp.signals import encoded

_LINE = re.compile(r"(?P<indent> *)(?P<label>\S.*?)(?: \(children (?P<children>\d+)\))?")
# The name of a column may hold anything, that of a function has no spaces.
_NAMED = re.compile(
    r"(?P<kind>Function(?= \S+( \(alias .*)?$)|Identifier|TableIdentifier) (?P<name>.+?)"
    r"(?: \(alias (?P<alias>.*)\))?"
)
_OTHER = re.compile(r"(?P<kind>[A-Za-z:]+)(?P<rest> .*)?")


@dataclass
class Node:
    """A node of the tree.

    Attributes:
        kind: its first word.
        name: of a function, a column or a table; empty for other kinds.
        alias: after AS; empty if there is none.
        label: the whole line.
        children: in the order of the text, more or less.
    """

    kind: str
    name: str
    alias: str
    label: str
    children: list[Node] = field(default_factory=list)

    def walk(self) -> Iterator[Node]:
        """Yield the node and all below it."""
        waiting = [self]
        while waiting:
            node = waiting.pop()
            yield node
            waiting.extend(reversed(node.children))

    def first(self, *kinds: str) -> Node:
        """Return the node reached by the first child of each kind in turn.

        Raises:
            QueryError: there is none.
        """
        node = self
        for kind in kinds:
            found = next((child for child in node.children if child.kind == kind), None)
            if found is None:
                raise _unreadable()
            node = found
        return node


def read_tree(text: str) -> Node:
    """Parse the output of ``EXPLAIN AST``.

    Raises:
        QueryError: it is no tree.
    """
    stack: list[tuple[Node, int]] = []
    root: Node | None = None
    for line in text.split("\n"):
        if not line.strip():
            continue
        match = _LINE.fullmatch(line)
        if match is None:
            raise _unreadable()
        depth = len(match["indent"])
        while len(stack) > depth:
            _complete(*stack.pop())
        node = _node(match["label"])
        if depth != len(stack) or (depth == 0) != (root is None):
            raise _unreadable()
        if root is None:
            root = node
        else:
            stack[-1][0].children.append(node)
        stack.append((node, int(match["children"] or 0)))
    while stack:
        _complete(*stack.pop())
    if root is None:
        raise _unreadable()
    return root


def _node(label: str) -> Node:
    if named := _NAMED.fullmatch(label):
        return Node(named["kind"], named["name"], named["alias"] or "", label)
    other = _OTHER.fullmatch(label)
    if other is None or other["kind"] in {"Function", "Identifier", "TableIdentifier"}:
        raise _unreadable()
    alias = re.search(r" \(alias (.*)\)$", label)
    return Node(other["kind"], "", alias[1] if alias else "", label)


def _complete(node: Node, expected: int) -> None:
    if len(node.children) != expected:
        raise _unreadable()


def _unreadable() -> Exception:
    return denied(
        "the statement could not be checked; names of columns and tables without spaces and signs may help"
    )


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


BLOCK_INFO = bytes([1, 0, 2, 0xFF, 0xFF, 0xFF, 0xFF, 0])
"""Precedes every block for a client that names a protocol version: no overflow, bucket -1."""
PROTOCOL_WITH_BLOCK_INFO = 54454
"""Clients that name this version or a later one read `BLOCK_INFO`; older ones only probe."""
OUR_REVISION = 54453
"""The last revision whose blocks differ from the engine's only by `BLOCK_INFO`."""
HELLO = "SELECT displayName(), version(), revision(), timezone()"
"""The first query of clickhouse-go, whose answer it parses by its own revision."""


def header(columns: Sequence[tuple[str, str]]) -> bytes:
    """Return the block without rows that has the names and types of columns."""
    return encoded(len(columns)) + encoded(0) + b"".join(_text(n) + _text(t) for n, t in columns)


def hello(version: str) -> bytes:
    """Answer `HELLO`: one row, each column with the byte that says "no special serialisation"."""
    revision = OUR_REVISION.to_bytes(4, "little")
    columns = [
        ("displayName()", "String", _text("mast-trace")),
        ("version()", "String", _text(version)),
        ("revision()", "UInt32", revision),
        ("timezone()", "String", _text("UTC")),
    ]
    rows = b"".join(_text(name) + _text(kind) + b"\0" + value for name, kind, value in columns)
    return BLOCK_INFO + encoded(len(columns)) + encoded(1) + rows


def _text(text: str) -> bytes:
    # Names of columns may hold any bytes.
    data = text.encode("utf-8", "surrogateescape")
    return encoded(len(data)) + data
