"""Brings what a reader asks into the one form that is run: a SELECT, a format, settings.

Works on the statement as the engine renders it after parsing. Whatever comes out is parsed and checked
again, so a slip here refuses a statement that could have been run, and lets none pass.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING

from mast_trace_collector.clickhouse_http.allowlist import lists
from mast_trace_collector.clickhouse_http.errors import denied
from mast_trace_collector.clickhouse_http.gate import catalogue_name
from mast_trace_collector.clickhouse_http.native import OUR_REVISION
from mast_trace_collector.clickhouse_http.rendering import (
    literal_of_bytes,
    quoted,
    replaced,
    tokens,
)
from mast_trace_collector.storage.readers import CATALOGUE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mast_trace_collector.clickhouse_http.engine import Handle
    from mast_trace_collector.clickhouse_http.rendering import Token
    from mast_trace_collector.clickhouse_http.tree import Node

_SETTING = re.compile(r"\s*(\w+) = (?:'((?:[^'\\]|\\['\\])*)'|(-?[\w.+-]+))\s*")
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
"""What clients ask about themselves when they begin, and is not told: function -> answer."""


@dataclass(frozen=True)
class Reading:
    """What is read.

    Attributes:
        select: the SELECT, without FORMAT and SETTINGS.
        format: that it names; empty for the default.
        settings: that stand at its end.
    """

    select: str
    format: str = ""
    settings: dict[str, str] = field(default_factory=dict)


def take_apart(text: str) -> Reading:
    """Take FORMAT and SETTINGS off the end of a rendered statement.

    Raises:
        QueryError: it writes its rows to a file, or a setting is no plain value.
    """
    found = tokens(text)
    _refuse_files(found)
    reading = _without_format(Reading(text), found)
    return _without_settings(reading, tokens(reading.select))


def with_values(handle: Handle, select: str, params: Mapping[str, str]) -> str:
    """Put the values of parameters in their places.

    Raises:
        QueryError: one is missing or cannot be read as its type, or stands for a name.
    """
    places = [token for token in tokens(select) if token.parameter]
    if not places:
        return select
    pairs = [token.parameter.partition(":") for token in places]
    if any(kind.strip().lower() == "identifier" for _, _, kind in pairs):
        raise denied(
            "a parameter may not stand for the name of a table or a column ({x:Identifier}): write the name "
            "into the statement"
        )
    values = ", ".join(f"ifNull(hex(toString({token.text})), 'NULL')" for token in places)
    row = handle.run(f"SELECT {values}", "TabSeparatedRaw", params).body.decode().rstrip("\n")
    changes = []
    for token, (_, _, kind), value in zip(places, pairs, row.split("\t"), strict=True):
        literal = "NULL" if value == "NULL" else literal_of_bytes(bytes.fromhex(value))
        plain = kind.strip() == "String"
        changes.append((token, literal if plain else f"_CAST({literal}, {_type(kind)})"))
    return replaced(select, changes)


def with_catalogue(select: str) -> str:
    """Put what stands for system tables, and for a client's questions about itself, in their places."""
    found = tokens(select)
    changes: list[tuple[Token, str]] = []
    catalogue = lists().catalogue
    for index, token in enumerate(found):
        following = found[index + 1 : index + 3]
        texts = "".join(each.text for each in following)
        tables = catalogue.get(token.name.lower(), {})
        if tables and len(following) == 2 and following[0].text == ".":
            name = catalogue_name(token.name.lower(), following[1].name)
            if following[1].name.lower() in tables:
                changes += [(token, CATALOGUE), (following[1], name.lower())]
        elif token.word.lower() in _CONSTANTS and texts == "()" and not _follows_dot(found, index):
            answer = _CONSTANTS[token.word.lower()]
            then = found[index + 3] if index + 3 < len(found) else None
            if not token.depth and (then is None or then.text == "," or then.word == "FROM"):
                answer += f" AS {quoted(f'{token.word}()')}"
            changes += [(token, answer), *((each, "") for each in following)]
    return replaced(select, changes)


def with_names(select: str, tree: Node) -> str:
    """Name the columns that a sub-query gives: the engine numbers them anew within a view."""
    query = tree
    while query.kind != "SelectQuery":
        query = query.children[0]
    found = tokens(select)
    begins = found[0].word
    lists_ = [child for child in query.children if child.kind == "ExpressionList"]
    columns = lists_[1 if begins == "WITH" else 0 :][:1]
    unnamed = [
        index
        for index, column in enumerate(columns[0].children if columns else [])
        if not column.alias and any(node.kind == "Subquery" for node in column.walk())
    ]
    if not unnamed or begins not in {"SELECT", "WITH"}:
        return select
    items = _items(found)
    if len(items) != len(columns[0].children):
        return select
    ends = [items[index][1] for index in unnamed]
    texts = [select[items[index][0].start : items[index][1].end] for index in unnamed]
    named = (f"{end.text} AS {quoted(text)}" for end, text in zip(ends, texts, strict=True))
    return replaced(select, zip(ends, named, strict=True))


def _items(found: list[Token]) -> list[tuple[Token, Token]]:
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


def _follows_dot(found: list[Token], index: int) -> bool:
    return index > 0 and found[index - 1].text == "."


def _refuse_files(found: list[Token]) -> None:
    for token, following in pairwise(found):
        if token.word == "INTO" and following.word == "OUTFILE":
            raise denied("INTO OUTFILE is not allowed: the rows are the answer")


def _without_format(reading: Reading, found: list[Token]) -> Reading:
    for index in range(len(found) - 1, 0, -1):
        before, name = found[index - 1], found[index]
        ends = index + 1 == len(found) or found[index + 1].word == "SETTINGS"
        if before.word == "FORMAT" and name.word and before.depth == 0 and ends and index > 1:
            text = reading.select
            return replace(
                reading, select=text[: before.start] + text[name.end :], format=name.word
            )
    return reading


def _without_settings(reading: Reading, found: list[Token]) -> Reading:
    starts = [token for token in found if token.word == "SETTINGS" and token.depth == 0]
    if not starts or starts[0] is found[0]:
        return reading
    settings: dict[str, str] = {}
    ends = [*(token.start for token in starts[1:]), len(reading.select)]
    for start, end in zip(starts, ends, strict=True):
        commas = [t for t in found if t.text == "," and t.depth == 0 and start.end <= t.start < end]
        bounds = [start.end, *(edge for comma in commas for edge in (comma.start, comma.end)), end]
        for first, last in zip(bounds[::2], bounds[1::2], strict=True):
            match = _SETTING.fullmatch(reading.select, first, last)
            if match is None:
                raise denied(
                    "SETTINGS may stand at the end of the statement only, with plain values: "
                    "SELECT ... SETTINGS max_threads = 2"
                )
            text = re.sub(r"\\(.)", r"\1", match[2]) if match[2] is not None else match[3]
            settings[match[1]] = text
    return replace(reading, select=reading.select[: starts[0].start], settings=settings)


def _type(kind: str) -> str:
    return literal_of_bytes(kind.strip().encode())
