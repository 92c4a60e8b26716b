"""Rewrites a reader's statement into the one form that is run: a SELECT, a format, settings.

The input is the statement as the engine renders it after parsing. The output is parsed and checked
again, so a defect here refuses a statement that could have been run, and lets none pass.

Substitution of values for a statement's parameters.

A view and a statement take parameters in different forms, so values become literals before the view
is created.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING

from mast_trace_collector.clickhouse_http.errors import QueryError, denied
from mast_trace_collector.clickhouse_http.gate import catalogue_name, lists
from mast_trace_collector.clickhouse_http.rendering import (
    OUR_REVISION,
    Node,
    Token,
    literal_of_bytes,
    quoted,
    replaced,
    tokens,
)
from mast_trace_collector.storage.readers import CATALOGUE
from mast_trace_collector.storage.span_sql import literal

if TYPE_CHECKING:
    from mast_trace_collector.clickhouse_http.engine import Handle

_ESCAPED = frozenset("\\\t\n\r\0'")

_SETTING = re.compile(r"(\w+) = (?:'((?:[^'\\]|\\['\\])*)'|(-? ?[\w.]+))(?: , |$)")
_ENDS_OF_LIST = frozenset(
    [
        "EXCEPT",
        "FROM",
        "GROUP",
        "HAVING",
        "INTERSECT",
        "LIMIT",
        "OFFSET",
        "ORDER",
        "PREWHERE",
        "QUALIFY",
        "UNION",
        "WHERE",
        "WINDOW",
    ]
)
_CONSTANTS = {
    "currentuser": "'default'",
    "displayname": "'mast-trace'",
    "revision": f"toUInt32({OUR_REVISION})",
    "user": "'default'",
}
"""Fixed answers to functions that clients call when they connect: function -> answer."""


def literals(
    handle: Handle, places: Sequence[Token], params: Mapping[str, str]
) -> list[tuple[Token, str]]:
    """Return the literal for each ``{name:Type}``.

    Args:
        handle: a connection, which reads values with escapes in them.
        places: tokens of parameters.
        params: values by name, escaped as ClickHouse reads them.

    Raises:
        QueryError: one is missing, cannot be read as its type, or stands for a name.
    """
    changes, escaped = [], []
    for place in places:
        name, _, kind = (part.strip() for part in place.text[1:-1].partition(":"))
        if kind.lower() == "identifier":
            raise denied(
                "a parameter may not stand for the name of a table or a column "
                f"({{{name}:Identifier}}): write the name into the statement"
            )
        if name not in params:
            raise QueryError(456, f"Substitution `{name}` is not set", "UNKNOWN_QUERY_PARAMETER")
        if _ESCAPED.isdisjoint(params[name]):
            changes.append((place, _cast(literal(params[name]), kind)))
        else:
            escaped.append((place, kind))
    if escaped:
        changes += _read(handle, escaped, params)
    return sorted(changes, key=lambda change: change[0].start)


def _read(
    handle: Handle, places: Sequence[tuple[Token, str]], params: Mapping[str, str]
) -> list[tuple[Token, str]]:
    """Let the engine read values with escapes in them."""
    # In hexadecimal, because they may hold any bytes.
    values = ", ".join(f"ifNull(hex(toString({place.text})), 'NULL')" for place, _ in places)
    read = handle.text(f"SELECT {values}", params).rstrip("\n").split("\t")
    return [
        (place, _cast("NULL" if value == "NULL" else literal_of_bytes(bytes.fromhex(value)), kind))
        for (place, kind), value in zip(places, read, strict=True)
    ]


def _cast(value: str, kind: str) -> str:
    return value if kind == "String" else f"_CAST({value}, {literal(kind)})"


@dataclass(frozen=True)
class StatementReading:
    """The parts of a statement.

    Attributes:
        text: the whole statement.
        found: its tokens, without FORMAT and SETTINGS.
        format: the output format that it names; empty for the default.
        settings: those at its end.
    """

    text: str
    found: Sequence[Token]
    format: str = ""
    settings: dict[str, str] = field(default_factory=dict)

    @property
    def select(self) -> str:
        """The statement without FORMAT and SETTINGS."""
        return self.text[: self.found[-1].end] if self.found else ""


def take_apart(text: str) -> StatementReading:
    """Split FORMAT and SETTINGS off the end of a rendered statement.

    Raises:
        QueryError: it writes its rows to a file, or a setting is no plain value.
    """
    found = tokens(text)
    _refuse_files(found)
    reading = _without_format(StatementReading(text, found))
    return _without_settings(reading)


def filled(handle: Handle, found: Sequence[Token], select: str, params: Mapping[str, str]) -> str:
    """Fill the values of parameters, and the names that replace system tables, into a SELECT.

    Args:
        handle: a connection that reads values.
        found: the tokens of the SELECT.
        select: as the engine renders it.
        params: values by name.

    Raises:
        QueryError: a value is missing or cannot be read, or stands for a name.
    """
    places = [token for token in found if token.kind == "parameter"]
    changes = [*literals(handle, places, params), *_catalogue(found)]
    return replaced(select, sorted(changes, key=lambda change: change[0].start))


def _catalogue(found: Sequence[Token]) -> list[tuple[Token, str]]:
    """Replacements for system tables and for a client's functions about itself."""
    changes: list[tuple[Token, str]] = []
    for index, token in enumerate(found):
        if token.kind not in {"word", "name"}:
            continue
        following = found[index + 1 : index + 3]
        lowered = token.text.lower().strip('`"')
        if (tables := lists().catalogue.get(lowered)) and len(following) == 2:
            table = following[1].name.lower()
            if following[0].text == "." and table in tables:
                changes += [(token, CATALOGUE), (following[1], catalogue_name(lowered, table))]
        elif token.word and lowered in _CONSTANTS and [t.text for t in following] == ["(", ")"]:
            then = found[index + 3] if index + 3 < len(found) else None
            column = not token.depth and (then is None or then.text == "," or then.word == "FROM")
            named = f" AS {quoted(token.word + '()')}" if column else ""
            changes += [(token, _CONSTANTS[lowered] + named), *((each, "") for each in following)]
    return changes


def with_names(select: str, tree: Node) -> str:
    """Name the columns of a sub-query: the engine would number them anew within a view."""
    query = tree
    while query.kind != "SelectQuery":
        query = query.children[0]
    begins = select.split(None, 1)[0]
    blocks = [child for child in query.children if child.kind == "ExpressionList"]
    columns = [column for block in blocks[begins == "WITH" :][:1] for column in block.children]
    unnamed = [
        index
        for index, column in enumerate(columns)
        if not column.alias and any(node.kind == "Subquery" for node in column.walk())
    ]
    if not unnamed or begins not in {"SELECT", "WITH"}:
        return select
    items = _items(tokens(select))
    if len(items) != len(columns):
        return select
    named = []
    for index in unnamed:
        first, last = items[index]
        named.append((last, f"{last.text} AS {quoted(select[first.start : last.end])}"))
    return replaced(select, named)


def _items(found: Sequence[Token]) -> list[tuple[Token, Token]]:
    """Return the first and the last token of each column of the first SELECT."""
    first = next(
        index for index, token in enumerate(found) if token.word == "SELECT" and not token.depth
    )
    first += 2 if found[first + 1].word == "DISTINCT" else 1
    items, start = [], first
    for index in range(first, len(found) + 1):
        over = index == len(found) or (
            not found[index].depth and found[index].word in _ENDS_OF_LIST
        )
        if over or (not found[index].depth and found[index].text == ","):
            items.append((found[start], found[index - 1]))
            start = index + 1
        if over:
            break
    return items


def _refuse_files(found: Sequence[Token]) -> None:
    for token, following in pairwise(found):
        if token.word == "INTO" and following.word == "OUTFILE":
            raise denied("INTO OUTFILE is not allowed: the rows are the answer")


def _without_format(reading: StatementReading) -> StatementReading:
    found = reading.found
    for index in range(len(found) - 1, 1, -1):
        before, name = found[index - 1], found[index]
        ends = index + 1 == len(found) or found[index + 1].word == "SETTINGS"
        # The engine renders FORMAT `Null` in quotes, even where the name is a keyword.
        if before.word == "FORMAT" and name.name and before.depth == 0 and ends:
            return replace(
                reading, found=[*found[: index - 1], *found[index + 1 :]], format=name.name
            )
    return reading


def _without_settings(reading: StatementReading) -> StatementReading:
    found = reading.found
    starts = [index for index, t in enumerate(found) if t.word == "SETTINGS" and not t.depth]
    if not starts or starts[0] == 0:
        return reading
    settings: dict[str, str] = {}
    for start, end in pairwise([*starts, len(found)]):
        clause = " ".join(token.text for token in found[start + 1 : end])
        at = 0
        while match := _SETTING.match(clause, at):
            text = match[2]
            settings[match[1]] = (
                re.sub(r"\\(.)", r"\1", text) if text is not None else match[3].replace(" ", "")
            )
            at = match.end()
        if at < len(clause):
            raise denied(
                "SETTINGS may stand at the end of the statement only, with plain values: "
                "SELECT ... SETTINGS max_threads = 2"
            )
    return replace(reading, found=found[: starts[0]], settings=settings)
