"""The catalogue: views that replace the system tables and reveal nothing about others' data.

Clients ask system.tables, system.columns and a few more before they begin. Those also hold sizes,
paths and other databases. So a reader gets views of them, in a database of their own, with the same
columns; columns that are not on the list have their type's default value.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mast_trace_collector.clickhouse_http.gate import catalogue_name, lists
from mast_trace_collector.clickhouse_http.rendering import quoted
from mast_trace_collector.storage.declarations import READABLE
from mast_trace_collector.storage.readers import CATALOGUE
from mast_trace_collector.storage.span_sql import literal

if TYPE_CHECKING:
    from mast_trace_collector.clickhouse_http.engine import Handle

_COLUMNS = (
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
                select = _select(f"{schema}.{table}", columns, shown, database)
                handle.do(
                    f"CREATE VIEW {CATALOGUE}.{catalogue_name(schema, table)} "
                    f"DEFINER = default SQL SECURITY DEFINER AS {select}"
                )


def _columns(handle: Handle) -> dict[tuple[str, str], dict[str, str]]:
    """Return the types of the system tables' columns by name."""
    known: dict[tuple[str, str], dict[str, str]] = {}
    for row in handle.text(_COLUMNS).splitlines():
        schema, table, name, kind = row.split("\t")
        known.setdefault((schema, table), {})[name] = kind
    return known


def _select(table: str, columns: dict[str, str], shown: dict[str, str], database: str) -> str:
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
