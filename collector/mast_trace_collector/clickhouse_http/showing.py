"""SHOW and EXISTS statements, rewritten as the SELECT that answers them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from mast_trace_collector.clickhouse_http.errors import denied
from mast_trace_collector.clickhouse_http.rendering import tokens
from mast_trace_collector.storage.readers import CATALOGUE
from mast_trace_collector.storage.span_sql import literal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mast_trace_collector.clickhouse_http.rendering import Token

_KINDS = frozenset({"SHOW", "EXISTS"})
_LIKE = re.compile(r"(NOT )?(I?LIKE) ('(?:[^'\\]|\\.)*')")
_LIMIT = re.compile(r"LIMIT (\d+)")
_NAME = re.compile(r"(?P<database>\w+)(?: \. (?P<table>\w+))?")
_SHOWN = "SHOW TABLES, SHOW DATABASES, SHOW CREATE TABLE, DESCRIBE TABLE, EXISTS TABLE and EXISTS DATABASE are"


def shows(text: str) -> bool:
    """Return whether a rendered statement lists objects of the database."""
    return text.split(None, 1)[0] in _KINDS


def as_select(text: str, database: str) -> str:
    """Return the SELECT with the rows of a ``SHOW`` or ``EXISTS``.

    Args:
        text: the statement as the engine renders it.
        database: used where none is named.

    Raises:
        QueryError: readers may not see it.
    """
    found = tokens(text)
    words = [token.word for token in found]
    match words[:3]:
        case ["SHOW", "DATABASES", *_]:
            rest, condition = found[2:], "1"
            table, column = "databases", "name"
        case ["SHOW", "TABLES", *_] | ["SHOW", "FULL", "TABLES"]:
            full = words[1] == "FULL"
            rest = found[3 if full else 2 :]
            if rest and rest[0].word in {"FROM", "IN"}:
                database, rest = rest[1].name, rest[2:]
            condition = f"database = {literal(database)}"
            kind = "if(engine = 'View', 'VIEW', 'BASE TABLE') AS table_type"
            table, column = "tables", f"name, {kind}" if full else "name"
        case ["SHOW", "CREATE", "TABLE" | "VIEW"]:
            condition, rest = _named(found[3:], database), []
            table, column = "tables", "create_table_query AS statement"
        case ["EXISTS", "TABLE" | "VIEW", *_]:
            condition, rest = _named(found[2:], database), []
            table, column = "tables", "toUInt8(count() > 0) AS result"
        case ["EXISTS", "DATABASE", _]:
            condition, rest = f"name = {literal(found[2].name)}", []
            table, column = "databases", "toUInt8(count() > 0) AS result"
        case _:
            raise denied(f"{' '.join(words[:2])} is not allowed; {_SHOWN}")
    order = "" if "count()" in column else " ORDER BY name"
    end = _filtered(rest)
    return f"SELECT {column} FROM {CATALOGUE}.{table} WHERE {condition}{end[0]}{order}{end[1]}"


def _named(found: Sequence[Token], database: str) -> str:
    """The condition that a table is the one of this name."""
    names = [token.name for token in found]
    match = _NAME.fullmatch(" ".join(name or "." for name in names))
    if match is None:
        raise denied(f"the name of the table cannot be read; {_SHOWN}")
    table = match["table"] or match["database"]
    schema = match["database"] if match["table"] else database
    return f"database = {literal(schema)} AND name = {literal(table)}"


def _filtered(rest: Sequence[Token]) -> tuple[str, str]:
    """The condition and the limit of ``[NOT] LIKE 'x' LIMIT n``."""
    condition = limit = ""
    text = " ".join(token.text for token in rest)
    if match := _LIKE.match(text):
        condition = f" AND name {match[1] or ''}{match[2]} {match[3]}"
        text = text[match.end() :].strip()
    if match := _LIMIT.match(re.sub(r"(?<=\d) (?=\d)", "", text)):
        limit, text = f" LIMIT {match[1]}", ""
    if text:
        raise denied(f"{text.split(None, 1)[0]} is not allowed here; {_SHOWN}")
    return condition, limit
