"""The gate: checks the names in a reader's statement.

The engine's own users decide which rows a reader gets (`confinement`). They do not decide which
functions may be called, and some functions open files, inspect the process or read beyond a
reader's rows. So every name in the parsed tree is looked up, whether it is called, passed as an
argument, or used as a column, and a name that is not on a list is refused.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any, Final

from mast_trace_collector.clickhouse_http.errors import denied
from mast_trace_collector.storage.readers import CATALOGUE, READABLE
from mast_trace_collector.storage.span_sql import literal

if TYPE_CHECKING:
    from mast_trace_collector.clickhouse_http.engine import Handle
    from mast_trace_collector.clickhouse_http.rendering import Node

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


_FUNCTIONS = "SELECT name, alias_to, is_aggregate FROM system.functions"
_TABLE_FUNCTIONS = "SELECT lower(name) FROM system.table_functions"

_KNOWN_FOR: Final = 5.0
"""Seconds for which the names of databases and tables are cached."""
_TABLES = "SELECT name FROM system.tables WHERE database = {}"
_DATABASES = "SELECT name FROM system.databases"


@dataclass(frozen=True)
class Lists:
    """The reviewed names, as they are written.

    Attributes:
        functions: those that are not aggregates.
        aggregates: without combinators.
        combinators: endings of aggregates.
        table_functions: in FROM.
        formats: of output.
        settings: those that a reader may set.
        syntax: kinds of nodes in a parsed tree.
        catalogue: database -> system table -> columns that are shown.
    """

    functions: frozenset[str]
    aggregates: frozenset[str]
    combinators: tuple[str, ...]
    table_functions: frozenset[str]
    formats: frozenset[str]
    settings: frozenset[str]
    syntax: frozenset[str]
    catalogue: dict[str, dict[str, dict[str, str]]]


@cache
def lists() -> Lists:
    """Return the lists."""
    file = resources.files("mast_trace_collector.clickhouse_http") / "allowed.toml"
    read: dict[str, Any] = tomllib.loads(file.read_text("utf-8"))

    def names(kind: str) -> frozenset[str]:
        return frozenset(name for group in read[kind] for name in group["names"].split())

    return Lists(
        functions=names("functions"),
        aggregates=names("aggregates"),
        # The longest first: MergeState ends in State.
        combinators=tuple(sorted(names("combinators"), key=len, reverse=True)),
        table_functions=frozenset(name.lower() for name in names("table_functions")),
        formats=names("formats"),
        settings=names("settings"),
        syntax=names("syntax"),
        catalogue={name: read[name] for name in ("system", "information_schema")},
    )


class Functions:
    """Looks up functions as an engine does: without regard to case, by alias, with combinators.

    Args:
        handle: a connection to the engine.
    """

    def __init__(self, handle: Handle) -> None:
        known = lists()
        listed = known.functions | known.aggregates
        # Listed names that are no functions of the engine are keywords to its parser.
        allowed, aggregates, refused = {name.lower() for name in listed}, set(), set()
        rows = handle.text(_FUNCTIONS).splitlines()
        for name, alias_to, is_aggregate in (row.split("\t") for row in rows):
            if (alias_to or name) not in listed:
                refused.add(name.lower())
                continue
            allowed.add(name.lower())
            if is_aggregate == "1":
                aggregates.add(name.lower())
        tables = handle.text(_TABLE_FUNCTIONS).split()
        self._allowed = frozenset(allowed - refused)
        self._aggregates = frozenset(aggregates - refused)
        self._refused = frozenset(refused | (set(tables) - known.table_functions - self._allowed))

    def may_call(self, name: str) -> bool:
        """Return whether a reader may call the function of this name."""
        return name.lower() in self._allowed or _combined(name, self._aggregates)

    def may_name(self, name: str) -> bool:
        """Return whether a reader may name a column so: no refused function may have the name."""
        return name.lower() in self._allowed or not (
            name.lower() in self._refused or _combined(name, self._refused)
        )


def _combined(name: str, aggregates: frozenset[str]) -> bool:
    """Return whether the name consists of one of these and one or more combinators."""
    waiting = [name]
    while waiting:
        text = waiting.pop()
        for ending in lists().combinators:
            if text.endswith(ending):
                rest = text.removesuffix(ending)
                if rest.lower() in aggregates:
                    return True
                waiting.append(rest)
    return False


class Gate:
    """Checks the names in statements of readers.

    Args:
        handle: a connection, which lists the engine's names.
        database: the one with our tables.
    """

    def __init__(self, handle: Handle, database: str) -> None:
        self._functions = Functions(handle)
        self._database = database
        self._catalogue = frozenset(catalogue_tables())
        self._existing: frozenset[str] = frozenset()
        self._databases: frozenset[str] = frozenset()
        self._asked = -_KNOWN_FOR

    def check(self, handle: Handle, tree: Node) -> None:
        """Check all names of a SELECT.

        Args:
            handle: a connection whose current database resolves unqualified names.
            tree: the parsed statement.

        Raises:
            QueryError: one of them is not allowed.
        """
        self._refresh(handle)
        lambdas = {node.alias for node in tree.walk() if node.name == "lambda" and node.alias}
        for node in tree.walk():
            self._check_kind(node)
            if node.kind == "TableExpression":
                self._check_source(node.children[0])
            for child in node.children:
                if child.kind == "Function" and node.kind != "TableExpression":
                    self._check_call(child.name, lambdas)
            if node.kind == "Identifier":
                self._check_identifier(node.name)

    def check_setting(self, name: str) -> None:
        """Refuse a setting that is not on the list.

        Raises:
            QueryError: the setting is not allowed.
        """
        if name not in lists().settings:
            raise denied(
                f"the setting {name} is not allowed; those that say how rows are written, how NULL and JOIN "
                "behave, and max_execution_time, max_threads, max_block_size are"
            )

    def check_format(self, name: str) -> None:
        """Refuse an output format that is not on the list.

        Raises:
            QueryError: the format is not allowed.
        """
        if name not in lists().formats:
            raise denied(
                f"the format {name} is not allowed; JSON, CSV, TabSeparated, Native, RowBinary, Arrow, "
                "Parquet, Pretty and their kin are"
            )

    def check_table(self, name: str) -> tuple[str, str]:
        """Return database and name of a table that a reader may read.

        Raises:
            QueryError: the table is not allowed, or does not exist.
        """
        database, _, table = name.rpartition(".")
        allowed = self._catalogue if database == CATALOGUE else READABLE
        if database not in {"", self._database, CATALOGUE} or table not in allowed:
            raise denied(
                f"the table {name} is not allowed; {', '.join(READABLE)} and what clients ask of "
                "system (tables, columns, databases, settings) are"
            )
        return database or self._database, table

    def _check_kind(self, node: Node) -> None:
        if node.kind == "Set":
            raise denied("SETTINGS may stand at the end of the statement only")
        if node.kind == "ColumnsApplyTransformer":
            raise denied("APPLY is not allowed: write the function out for each column")
        if node.kind not in lists().syntax:
            raise denied(f"{node.kind} is not allowed in a SELECT")

    def _check_source(self, node: Node) -> None:
        """Check an item of FROM or JOIN."""
        if node.kind == "Function" and node.name.lower() not in lists().table_functions:
            raise denied(
                f"the table function {node.name} is not allowed; "
                f"{', '.join(sorted(lists().table_functions))} are"
            )
        # A name without a database may be a CTE's. If there is no such table, the engine reports
        # it.
        if node.kind == "TableIdentifier" and ("." in node.name or node.name in self._existing):
            self.check_table(node.name)

    def _check_call(self, name: str, lambdas: set[str]) -> None:
        if self._functions.may_call(name) or (name in lambdas and self._functions.may_name(name)):
            return
        raise denied(
            f"the function {name} is not allowed; functions that compute from their arguments alone are"
        )

    def _check_identifier(self, name: str) -> None:
        """Check a name that may be a column's, an alias's, a table's or a function's."""
        first, *rest = name.split(".")
        for part in (first, *rest):
            if not self._functions.may_name(part):
                raise denied(
                    f"the name {part} is not allowed: a function that readers may not use has it; "
                    "give the column another name"
                )
            if part.startswith("_"):
                raise denied(
                    f"the name {part} is not allowed: a leading underscore marks the names "
                    "that show how rows are stored"
                )
        if rest and first in self._databases:
            self.check_table(".".join((first, rest[0])))
        elif first in self._existing:
            self.check_table(first)

    def _refresh(self, handle: Handle) -> None:
        now = time.monotonic()
        if now - self._asked < _KNOWN_FOR:
            return
        # Names may hold other line separators of Python's than "\n".
        tables = handle.text(_TABLES.format(literal(self._database)))
        self._existing = frozenset(tables.split("\n")) - {""}
        self._databases = frozenset(handle.text(_DATABASES).split("\n")) - {""}
        self._asked = now


def catalogue_tables() -> list[str]:
    """Return the names in the catalogue."""
    return [
        catalogue_name(database, table)
        for database, tables in lists().catalogue.items()
        for table in tables
    ]


def catalogue_name(database: str, table: str) -> str:
    """Return the catalogue's name for a table of ``system``."""
    return table if database == "system" else f"{database}_{table}"
