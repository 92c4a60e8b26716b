"""A store limited to one project: the engine adds a condition to every table that is read."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

from mast_trace.exceptions import StorageError
from mast_trace_collector.storage.span_sql import literal
from mast_trace_collector.storage.store import Store

if TYPE_CHECKING:
    from clickhouse_connect.driver.client import Client

    from mast_trace_collector.storage.address import Address
    from mast_trace_collector.storage.clients import Clients

_SETTING = "additional_table_filters"
_RENEW_SECONDS = 30.0
"""Age at which the list of tables is refreshed: a migration may have added some."""
_NO_ROWS = "0"
_CANARY = "mast_schema_migrations"
"""A table that always has rows, none of which belongs to a project."""

# They compute their rows and hold no stored data.
_OPEN_SYSTEM_TABLES = ("one", "numbers", "numbers_mt", "zeros", "zeros_mt", "functions")

# Views by their own name, too: a migration may replace their source at any moment.
_TABLES = """
    SELECT t.database AS database, t.name AS name,
        t.name IN (SELECT table FROM system.columns WHERE database = {database:String} AND name = 'Project')
            AS has_project,
        t.name IN (SELECT table FROM system.columns WHERE database = {database:String} AND name = 'TraceId')
            AS has_trace
    FROM system.tables AS t
    WHERE t.database = {database:String} OR (t.database = 'system' AND t.name NOT IN {open:Array(String)})
"""


class ProjectStore(Store):
    """Reads the rows of one project in every table, view and sub-query; writes rows of it alone.

    `store_of_project` makes it. Statements that do anything but read are refused, except inserts of
    rows that name the project.
    """

    def __init__(self, whole: Store, project: str, address: Address, clients: Clients) -> None:
        super().__init__(address, clients.prepared(self._confine))
        self.project = project
        self.whole = whole
        self._former = self._clients
        self._renewed = time.monotonic()
        self._lock = threading.Lock()

    def query(
        self,
        sql: str,
        params: Mapping[str, Any] | None = None,
        *,
        settings: Mapping[str, Any] | None = None,
        wishes: Mapping[str, Any] | None = None,
    ) -> list[dict[str, Any]]:
        """Return the rows of a SELECT; see `Store.query`.

        Raises:
            ValueError: the settings would replace the condition.
        """
        if _SETTING in {**(settings or {}), **(wishes or {})}:
            raise ValueError(f"{_SETTING} is this store's own setting")
        self._renew()
        return super().query(sql, params, settings=settings, wishes=wishes)

    def insert_columns(
        self,
        table: str,
        names: Sequence[str],
        columns: Sequence[Sequence[Any]],
        *,
        token: str | None = None,
        settings: Mapping[str, Any] | None = None,
    ) -> int:
        """Insert rows that all name the project; see `Store.insert`.

        Raises:
            ValueError: a row names another project, or none.
        """
        named = columns[list(names).index("Project")] if "Project" in names else [None]
        if any(project != self.project for project in named):
            raise ValueError(f"a row for {table} belongs to another project than {self.project!r}")
        return super().insert_columns(table, names, columns, token=token, settings=settings)

    def command(self, *_: Any, **__: Any) -> NoReturn:
        """Refuse: a statement of any kind cannot be confined."""
        raise _refused("run commands")

    def raw_insert(self, *_: Any, **__: Any) -> NoReturn:
        """Refuse: the project of these rows cannot be checked."""
        raise _refused("insert unread rows")

    def file_insert(self, *_: Any, **__: Any) -> NoReturn:
        """Refuse: the project of these rows cannot be checked."""
        raise _refused("insert files")

    def client(self) -> NoReturn:
        """Refuse: a client can do anything."""
        raise _refused("lend a client")

    def close(self) -> None:
        """Close every connection of this store; that of all projects stays open."""
        with self._lock:
            self._former.close()
            self._clients.close()

    def _renew(self) -> None:
        """Switch to new clients, which know the present tables."""
        with self._lock:
            if time.monotonic() - self._renewed < _RENEW_SECONDS:
                return
            self._renewed = time.monotonic()
            # A caller about to borrow one of the last clients still can.
            self._former.close()
            self._former, self._clients = self._clients, self._clients.prepared(self._confine)

    def _confine(self, client: Client) -> None:
        """Set the condition, and verify that the engine applies it.

        Raises:
            StorageError: the engine does not apply it.
        """
        conditions = dict(self._conditions(client))
        canary = f"{self.database}.{_CANARY}"
        if canary not in conditions:
            raise StorageError(f"{self.url}: the tables are missing: run `mast-trace migrate`")
        client.set_client_setting(_SETTING, conditions)
        shown = client.query(f"SELECT count() FROM {canary}").result_rows  # noqa: S608
        if list(shown) != [(0,)]:
            raise StorageError(
                f"{self.url} does not apply the setting {_SETTING}, without which a project's rows "
                "cannot be told from others': let this user change it"
            )

    def _conditions(self, client: Client) -> Iterator[tuple[str, str]]:
        """Yield each table that must not be read whole, with the condition on its rows."""
        listed = client.query(
            _TABLES, parameters={"database": self.database, "open": list(_OPEN_SYSTEM_TABLES)}
        )
        ours = f"Project = {literal(self.project)}"
        for row in listed.named_results():
            condition = _NO_ROWS
            if row["database"] == self.database:
                if row["has_project"]:
                    condition = ours
                elif row["has_trace"]:
                    states = f"{self.database}.mast_run_states"
                    condition = f"TraceId IN (SELECT TraceId FROM {states} WHERE {ours})"  # noqa: S608
            yield f"{row['database']}.{row['name']}", condition


def store_of_project(store: Store, project: str) -> ProjectStore:
    """Return ``store`` limited to one project: the engine itself leaves out all other rows.

    It has clients of its own, which are closed with ``store`` at the latest.

    Raises:
        ValueError: ``store`` is limited to another project already.
    """
    if not isinstance(store, ProjectStore):
        return store.dependent(partial(ProjectStore, store, project))
    if project != store.project:
        raise ValueError(f"this store shows {store.project!r} alone")
    return store_of_project(store.whole, project)


def _refused(what: str) -> StorageError:
    return StorageError(f"the store of one project does not {what}")
