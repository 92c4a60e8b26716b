"""Confines readers by the engine's own users, grants and row filters.

A reader's SELECT becomes a view whose definer is the user of that reader's project, and the
statement reads that view: whatever tables the SELECT names, the engine checks that user's grants,
and adds the user's row filters to each table. The view has a parameter of its own, because then the
engine does not analyse its text until it is read, as the definer: without one it would analyse the
SELECT as the user who creates the view, who may do anything.
"""

from __future__ import annotations

import contextlib
import secrets
import threading
from collections.abc import Iterator
from typing import Final

from mast_trace.exceptions import ConfigurationError
from mast_trace_collector.clickhouse_http.engine import Handle, Handles
from mast_trace_collector.clickhouse_http.errors import ACCESS_DENIED, QueryError, denied
from mast_trace_collector.clickhouse_http.plain_tables import PlainTables, make_catalogue
from mast_trace_collector.clickhouse_http.rendering import Node, read_tree
from mast_trace_collector.storage.readers import (
    CATALOGUE,
    DATABASE,
    PLAIN,
    PROOF,
    SEATS,
    reader,
    seat,
)
from mast_trace_collector.storage.span_sql import literal

MAX_STATEMENT: Final = 64 * 1024 * 1024
"""Most characters of a statement, with the values of its parameters filled in."""
_VIEW = (
    "CREATE VIEW {database}.{name} DEFINER = {user} SQL SECURITY DEFINER AS "
    "SELECT * FROM ({select}) WHERE {{on:UInt8}}"
)
_PARSED = "EXPLAIN AST " + _VIEW.format(
    database="x", name="x", user="x", select="{select}"
).replace("{on:UInt8}", "{{on:UInt8}}")
_PROOF = (
    f"CREATE TABLE {DATABASE}.{PROOF} (Project String) ENGINE = Memory",
    f"INSERT INTO {DATABASE}.{PROOF} VALUES ('one'), ('other')",
)
_DENIED = f"SELECT * FROM {DATABASE}.{seat(0)}", "SELECT * FROM file('/dev/null', 'LineAsString')"
_AROUND = frozenset(
    {
        "Asterisk",
        "CreateQuery",
        "ExpressionList",
        "Identifier",
        "QueryParameter",
        "SelectQuery",
        "SelectWithUnionQuery",
        "Subquery",
        "TableExpression",
        "TablesInSelectQuery",
        "TablesInSelectQueryElement",
        "View",
    }
)
"""Kinds of nodes of the view itself."""


class Seats:
    """Lends users to projects; a project keeps its user until another project needs a seat.

    Args:
        handles: connections that may do anything.
        number: of seats.
    """

    def __init__(self, handles: Handles, number: int = SEATS) -> None:
        self._handles = handles
        # Ordered from the least to the most recently used.
        self._places: dict[str, str | None] = {seat(each): None for each in range(number)}
        self._busy: dict[str, int] = dict.fromkeys(self._places, 0)
        self._changed = threading.Condition()

    @contextlib.contextmanager
    def take(self, project: str) -> Iterator[str]:
        """Lend the user that sees this project's rows; wait while others use all seats."""
        with self._changed:
            name = self._changed.wait_for(lambda: self._find(project))
            if self._places[name] != project:
                self._seat(name, project)
            self._places[name] = self._places.pop(name)
            self._busy[name] += 1
        try:
            yield name
        finally:
            with self._changed:
                self._busy[name] -= 1
                self._changed.notify_all()

    def _find(self, project: str) -> str:
        """Return the project's seat, else a free one; empty if there is none."""
        own = next((name for name, owner in self._places.items() if owner == project), "")
        return own or next((name for name in self._places if not self._busy[name]), "")

    def _seat(self, name: str, project: str) -> None:
        # The seat belongs to no project while it is reassigned: with no row, or two, the engine
        # shows no rows at all.
        self._places[name] = None
        with self._handles.borrow() as handle:
            table = f"{DATABASE}.{name}"
            handle.do(f"CREATE TABLE IF NOT EXISTS {table} (Project String) ENGINE = Memory")
            handle.do(f"TRUNCATE TABLE {table}")
            handle.do(f"INSERT INTO {table} VALUES ({literal(project)})")
        self._places[name] = project


class Confinement:
    """The engine's users for readers, and the views by which statements run as them.

    One for each engine, whatever the number of endpoints.

    Args:
        path: the engine's folder.
        database: the one with our tables.
        settings: of connections.

    Raises:
        ConfigurationError: the engine does not keep readers apart.
    """

    _open: dict[str, tuple[Confinement, int]] = {}  # noqa: RUF012  # all that are in use
    _lock = threading.Lock()

    def __init__(self, path: str, database: str, settings: dict[str, str]) -> None:
        self._database = database
        self._plain = PlainTables(database)
        self._handles = Handles(path, {**settings, "max_query_size": str(MAX_STATEMENT)})
        try:
            with self._handles.borrow() as handle:
                for made in (DATABASE, PLAIN):
                    handle.do(f"DROP DATABASE IF EXISTS {made} SYNC")
                    handle.do(f"CREATE DATABASE {made} ENGINE = Memory")
                for sql in _PROOF:
                    handle.do(sql)
                make_catalogue(handle, database)
            self._seats = Seats(self._handles)
            self._prove()
        except BaseException:
            self._handles.close()
            raise

    @classmethod
    @contextlib.contextmanager
    def of(cls, path: str, database: str, settings: dict[str, str]) -> Iterator[Confinement]:
        """Lend the engine's confinement; the last user to return it removes its views."""
        with cls._lock:
            found, users = cls._open.get(path) or (cls(path, database, settings), 0)
            cls._open[path] = (found, users + 1)
        try:
            yield found
        finally:
            with cls._lock:
                found, users = cls._open.pop(path)
                if users > 1:
                    cls._open[path] = (found, users - 1)
                else:
                    found.close()

    def tree(self, handle: Handle, select: str) -> Node:
        """Return the tree of a SELECT within the view that would run it.

        Raises:
            QueryError: it cannot be parsed, or is more than a SELECT.
        """
        root = read_tree(handle.text(_PARSED.format(select=select)))
        inner = root.first(
            *("SelectWithUnionQuery", "ExpressionList", "SelectQuery", "TablesInSelectQuery"),
            *("TablesInSelectQueryElement", "TableExpression", "Subquery"),
        ).first("SelectWithUnionQuery")
        mine = {id(node) for node in inner.walk()}
        around = [node.kind for node in root.walk() if id(node) not in mine]
        if not _AROUND.issuperset(around) or around.count("Subquery") != 1:
            raise denied("one SELECT at a time")
        return inner

    @contextlib.contextmanager
    def view(self, select: str, project: str | None, current: str = "") -> Iterator[str]:
        """Make a view for one statement.

        Args:
            select: the checked SELECT.
            project: the project whose rows it sees; None for all.
            current: the database of tables that are named without one; empty for ours.

        Yields:
            The view to select from.
        """
        with contextlib.ExitStack() as stack:
            user = reader() if project is None else stack.enter_context(self._seats.take(project))
            name = f"{DATABASE}.q_{secrets.token_hex(16)}"
            current = current or self._database
            with self._handles.borrow() as handle:
                if project is not None:
                    self._plain.renew(handle)
                    select = self._plain.renamed(select)
                    current = PLAIN if current == self._database else current
                sql = _VIEW.format(
                    database=DATABASE, name=name.partition(".")[2], user=user, select=select
                )
                handle.use(current)
                handle.do(sql)
                try:
                    yield f"{name}(on = 1)"
                finally:
                    # Removed while the connection is ours: once returned, another thread may use
                    # it.
                    handle.do(f"DROP VIEW {name}")

    def close(self) -> None:
        """Remove the users' views and the catalogue."""
        with contextlib.suppress(QueryError), self._handles.borrow() as handle:
            for database in (DATABASE, CATALOGUE, PLAIN):
                handle.do(f"DROP DATABASE IF EXISTS {database} SYNC")
        self._handles.close()

    def _prove(self) -> None:
        """Test whether the engine keeps two projects apart, and readers from other tables."""
        select = f"SELECT arraySort(groupArray(Project)) FROM {DATABASE}.{PROOF}"
        seen = {
            project: self._try(select, project) for project in ("one", "other", "neither", None)
        }
        denials = [self._try(denied, None) for denied in _DENIED]
        expected = {
            "one": "['one']",
            "other": "['other']",
            "neither": "[]",
            None: "['one','other']",
        }
        if seen != expected or denials != [str(ACCESS_DENIED)] * len(_DENIED):
            raise ConfigurationError(
                "this version of the embedded engine does not keep readers of the ClickHouse endpoint "
                f"apart ({seen}, {denials}): install chdb 4.4 or later, or use a ClickHouse server "
                "(MAST_TRACE_DATABASE_URL)"
            )

    def _try(self, select: str, project: str | None) -> str:
        """Return a reader's result: a value, or the number of an error."""
        try:
            with (
                self.view(select, project, DATABASE) as view,
                self._handles.borrow() as handle,
            ):
                return handle.text(f"SELECT * FROM {view}").strip()
        except QueryError as error:
            return str(error.code)
