"""Views of our tables for readers of one project, with plain types instead of dictionaries.

A column of type LowCardinality has one dictionary for a whole part, other projects' values
included, and the engine runs functions on all of it, regardless of the row filter. A function that
fails, or takes long, for one of those values reveals it. So a project reads views of the tables
whose columns are cast to plain types before any other use; the views run as the reader, and apply
the reader's row filters.

The catalogue: views that replace the system tables and reveal nothing about others' data.

Clients ask system.tables, system.columns and a few more before they begin. Those also hold sizes,
paths and other databases. So a reader gets views of them, in a database of their own, with the same
columns; columns that are not on the list have their type's default value.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from mast_trace_collector.clickhouse_http.gate import catalogue_name, lists
from mast_trace_collector.clickhouse_http.rendering import Token, quoted, replaced, tokens
from mast_trace_collector.storage.readers import CATALOGUE, PLAIN, READABLE
from mast_trace_collector.storage.span_sql import literal

if TYPE_CHECKING:
    from mast_trace_collector.clickhouse_http.engine import Handle


_CATALOGUE_COLUMNS = (
    "SELECT database, table, name, type FROM system.columns "
    "WHERE database IN ('system', 'information_schema') AND default_kind != 'ALIAS'"
)


def make_catalogue(handle: Handle, database: str) -> None:
    """Create the views anew.

    Args:
        handle: a connection that may do anything.
        database: the one with our tables.
    """
    handle.do(f"DROP DATABASE IF EXISTS {CATALOGUE} SYNC")
    handle.do(f"CREATE DATABASE {CATALOGUE} ENGINE = Memory")
    known = _columns(handle)
    for schema, tables in lists().catalogue.items():
        for table, shown in tables.items():
            # None in an engine without such a table.
            if columns := known.get((schema, table)):
                select = _catalogue_select(f"{schema}.{table}", columns, shown, database)
                handle.do(
                    f"CREATE VIEW {CATALOGUE}.{catalogue_name(schema, table)} "
                    f"DEFINER = default SQL SECURITY DEFINER AS {select}"
                )


def _columns(handle: Handle) -> dict[tuple[str, str], dict[str, str]]:
    """Return the types of the system tables' columns by name."""
    known: dict[tuple[str, str], dict[str, str]] = {}
    for row in handle.text(_CATALOGUE_COLUMNS).splitlines():
        schema, table, name, kind = row.split("\t")
        known.setdefault((schema, table), {})[name] = kind
    return known


def _catalogue_select(
    table: str, columns: dict[str, str], shown: dict[str, str], database: str
) -> str:
    listed = dict.fromkeys(shown["columns"].split(), "{}")
    listed |= dict.fromkeys(shown.get("nullable", "").split(), "toNullable({0}) AS {0}")
    outputs = [
        listed[name].format(quoted(name))
        if name in listed
        else f"defaultValueOfTypeName({literal(kind)}) AS {quoted(name)}"
        for name, kind in columns.items()
    ]
    condition = shown.get("rows", "1").format(
        database=literal(database), tables=_tuple(READABLE), settings=_tuple(lists().settings)
    )
    # In a sub-query, so that a condition means the original column and not the masked one.
    return f"SELECT {', '.join(outputs)} FROM (SELECT * FROM {table} WHERE {condition})"


def _tuple(names: object) -> str:
    return f"({', '.join(map(literal, sorted(names)))})"  # type: ignore[call-overload]


_COLUMNS = (
    "SELECT table, hex(name), type FROM system.columns "
    "WHERE database = {} AND table IN ({}) ORDER BY table, position"
)
_MERGED = (
    "SELECT name FROM system.tables "
    "WHERE database = {} AND name IN ({}) AND match(engine, '(Replacing|Aggregating)MergeTree$')"
)
_FINAL: Final = "_final"
"""Ending of the view that merges rows as FINAL does, because FINAL cannot be applied to a view."""
_OWN: Final = {
    "otel_traces_trace_id_ts": "SELECT TraceId, toDateTime(min(Timestamp)) AS Start, "
    "toDateTime(max(Timestamp)) AS End FROM {}.otel_traces WHERE TraceId != '' GROUP BY TraceId",
}
"""Tables without a column Project, computed from one that has it: their rows mix projects' spans."""
_DICTIONARY = "LowCardinality("
_AFTER_CONDITION = frozenset(
    {
        *("EXCEPT", "GROUP", "HAVING", "INTERSECT", "LIMIT", "OFFSET", "ORDER", "QUALIFY"),
        *("UNION", "WINDOW"),
    }
)


class PlainTables:
    """The views, created at first use and again when a table has changed.

    Args:
        database: the one with our tables.
    """

    def __init__(self, database: str) -> None:
        self._database = database
        self._made: dict[str, list[tuple[str, str]]] = {}
        self._merged: frozenset[str] = frozenset()
        self._lock = threading.Lock()

    def renew(self, handle: Handle) -> None:
        """Create the views that are missing or have other columns than their table."""
        with self._lock:
            names = literal(self._database), ", ".join(map(literal, READABLE))
            found = self._columns(handle.text(_COLUMNS.format(*names)))
            if found == self._made:
                return
            self._merged = frozenset(handle.text(_MERGED.format(*names)).split())
            for table, columns in found.items():
                select = _OWN.get(table, "").format(self._database)
                select = select or _select(f"{self._database}.{table}", columns)
                views = {table: select}
                if table in self._merged:
                    views[table + _FINAL] = f"{select} FINAL"
                for view, text in views.items():
                    handle.do(f"DROP VIEW IF EXISTS {PLAIN}.{view}")
                    handle.do(f"CREATE VIEW {PLAIN}.{view} SQL SECURITY INVOKER AS {text}")
            self._made = found

    def renamed(self, select: str) -> str:
        """Return a rendered SELECT with the views in place of the tables."""
        found = tokens(select)
        changes = self._names(found)
        _join_conditions(found, changes)
        return replaced(select, [(found[index], changes[index]) for index in sorted(changes)])

    def _names(self, found: Sequence[Token]) -> dict[int, str]:
        changes = {}
        for index, token in enumerate(found):
            if token.name not in READABLE:
                continue
            before = found[max(index - 2, 0) : index]
            dotted = bool(before) and before[-1].text == "."
            if dotted and before[0].name != self._database:
                continue
            if dotted:
                changes[index - 2] = PLAIN
            if token.name not in self._merged:
                continue
            following = [each.word for each in found[index + 1 : index + 4]] + [""] * 3
            aliased = following[0] == "AS"
            if following[2 if aliased else 0] == "FINAL":
                changes[index] = token.name + _FINAL + ("" if aliased else f" AS {token.name}")
                changes[index + (3 if aliased else 1)] = ""
        return changes

    @staticmethod
    def _columns(rows: str) -> dict[str, list[tuple[str, str]]]:
        found: dict[str, list[tuple[str, str]]] = {}
        for row in rows.splitlines():
            table, name, kind = row.split("\t")
            found.setdefault(table, []).append((bytes.fromhex(name).decode(), kind))
        return found


def plain(kind: str) -> str:
    """Return a type without its dictionaries."""
    while (at := kind.find(_DICTIONARY)) >= 0:
        depth, end = 1, at + len(_DICTIONARY)
        while depth:
            depth += {"(": 1, ")": -1}.get(kind[end], 0)
            end += 1
        kind = kind[:at] + kind[at + len(_DICTIONARY) : end - 1] + kind[end:]
    return kind


def _select(table: str, columns: Sequence[tuple[str, str]]) -> str:
    outputs = [
        quoted(name)
        if plain(kind) == kind
        else f"CAST(t.{quoted(name)}, {literal(plain(kind))}) AS {quoted(name)}"
        for name, kind in columns
    ]
    return f"SELECT {', '.join(outputs)} FROM {table} AS t"


def _join_conditions(found: Sequence[Token], changes: dict[int, str]) -> None:
    """Turn each PREWHERE into WHERE, because a view does not support it."""
    for index, token in enumerate(found):
        if token.word != "PREWHERE":
            continue
        changes[index] = "WHERE ("
        end, where = index + 1, 0
        while end < len(found) and found[end].depth >= token.depth:
            if found[end].depth == token.depth:
                if found[end].word in _AFTER_CONDITION:
                    break
                where = end if found[end].word == "WHERE" else where
            end += 1
        if where:
            changes[where] = ") AND ("
        changes[end - 1] = found[end - 1].text + ")"
