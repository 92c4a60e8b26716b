"""The `Store`: the only access to the database."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakSet

from mast_trace_collector.storage.address import Address, parse_address
from mast_trace_collector.storage.clients import Clients, settable
from mast_trace_collector.storage.embedded import DEFAULT_MEMORY_LIMIT
from mast_trace_collector.storage.moments import comparable, storable
from mast_trace_collector.storage.span_sql import literal

if TYPE_CHECKING:
    from clickhouse_connect.driver.client import Client
    from typing_extensions import Self

S = TypeVar("S", bound="Store")

PERMANENT = frozenset({6, 27, 32, 33, 36, 43, 53, 69, 70, 72, 117, 131, 248, 349, 395, 444, 469})
"""ClickHouse's errors about the data of an insert: a retry fails the same way."""

_NOT_A_PATH = re.compile(r"[*?{}]|::")
"""In a path for ClickHouse: a pattern of names, or a file within an archive."""

WRITE_SETTINGS = {
    # A batch may hold any mixture of days: an import, or a sender with a broken clock.
    "max_partitions_per_insert_block": 0,
    # In a cluster, a batch is stored when its shards have it, not when one node is about to send
    # it.
    "distributed_foreground_insert": 1,
}


class Store:
    """A ClickHouse database, embedded in this process or on a server.

    Safe to use from any number of threads: each call borrows a client of its own.
    """

    def __init__(self, address: Address, clients: Clients) -> None:
        self.database = address.database
        self.url = address.label
        self.embedded_path = address.path
        self._address = address
        self._clients = clients
        self._dependents: WeakSet[Store] = WeakSet()
        self._column_types: dict[tuple[str, tuple[str, ...]], list[Any]] = {}

    @classmethod
    def open(
        cls,
        url: str,
        *,
        database: str | None = None,
        memory_limit: int = DEFAULT_MEMORY_LIMIT,
        settings: Mapping[str, Any] | None = None,
        connect_timeout: float = 10.0,
        timeout: float = 300.0,
        connect: bool = True,
    ) -> Store:
        """Open a store.

        Args:
            url: ``chdb:///absolute/path`` or ``http(s)://user:password@host:8123/database``.
            database: overrides the address's; ``mast_trace`` if neither names one.
            memory_limit: bytes that the embedded engine may use; ignored for a server.
            settings: ClickHouse settings for every statement.
            connect_timeout: seconds to wait for a server's connection.
            timeout: seconds to wait for a server's answer.
            connect: check now that the database answers; otherwise with the first statement.

        Raises:
            ConfigurationError: the address cannot be used.
            StorageError: the database does not answer, or its folder is in use.
        """
        address = parse_address(url, database)
        clients = Clients(
            address,
            memory_limit=memory_limit,
            settings=dict(settings or {}),
            connect_timeout=connect_timeout,
            timeout=timeout,
        )
        store = cls(address, clients)
        if connect:
            with clients.borrow():
                pass
        return store

    def dependent(self, make: Callable[[Address, Clients], S]) -> S:
        """Return another store of the same database, which is closed with this one at the latest.

        Args:
            make: creates it from the address and from clients like this store's.
        """
        made = make(self._address, self._clients)
        self._dependents.add(made)
        return made

    def query(
        self,
        sql: str,
        params: Mapping[str, Any] | None = None,
        *,
        settings: Mapping[str, Any] | None = None,
        wishes: Mapping[str, Any] | None = None,
    ) -> list[dict[str, Any]]:
        """Return the rows of a SELECT.

        Args:
            sql: the statement; ``{name:Type}`` in it is bound by the server.
            params: the values of these; a time that conditions cannot compare becomes the nearest that they can.
            settings: ClickHouse settings without which the statement must not run.
            wishes: ClickHouse settings that change no row, only the way to it: each is left out where the
                engine does not know it or this user may not set it.
        """
        with self._clients.borrow() as client:
            given = {**settable(wishes or {}, client), **(settings or {})}
            # The embedded engine has the zone of the machine; times are shown, and named, in UTC.
            result = client.query(sql, parameters=_given(params), settings=given, query_tz="UTC")
            return list(result.named_results())

    def describe(self, sql: str, params: Mapping[str, Any] | None = None) -> list[tuple[str, str]]:
        """Return names and types of a SELECT's columns, which an empty result does not carry."""
        rows = self.query(f"DESCRIBE TABLE (\n{sql}\n)", params)
        return [(row["name"], row["type"]) for row in rows]

    def command(
        self,
        sql: str,
        params: Mapping[str, Any] | None = None,
        *,
        settings: Mapping[str, Any] | None = None,
        use_database: bool = True,
    ) -> Any:
        """Run a statement that returns nothing or one value."""
        with self._clients.borrow() as client:
            return client.command(
                sql,
                parameters=_given(params),
                settings=dict(settings or {}),
                use_database=use_database,
            )

    def insert(
        self, table: str, rows: Sequence[Mapping[str, Any]], *, token: str | None = None
    ) -> int:
        """Insert ``rows``, which all have the same keys, and return their number.

        Args:
            table: its name, in the store's database.
            rows: column name -> value; columns left out take their defaults. A time that no column holds
                becomes the nearest that one does.
            token: the deduplication token: a second insert with it stores nothing.
        """
        if not rows:
            return 0
        names = tuple(rows[0])
        if any(row.keys() != rows[0].keys() for row in rows):
            raise ValueError("the rows of one insert have the same keys")
        columns = [[_storable(row[name]) for row in rows] for name in names]
        return self.insert_columns(table, names, columns, token=token, settings=WRITE_SETTINGS)

    def insert_columns(
        self,
        table: str,
        names: Sequence[str],
        columns: Sequence[Sequence[Any]],
        *,
        token: str | None = None,
        settings: Mapping[str, Any] | None = None,
    ) -> int:
        """Insert one sequence of values for each name; see `insert`."""
        try:
            self._insert(table, tuple(names), columns, token, settings or {})
        except UnicodeEncodeError:
            clean = [_encodable(column) for column in columns]
            self._insert(table, tuple(names), clean, token, settings or {})
        return len(columns[0])

    def raw_insert(
        self,
        table: str,
        data: bytes | Generator[bytes, None, None],
        fmt: str,
        *,
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        """Insert ``data``, which ClickHouse parses as ``fmt``; in parts for the embedded engine only."""
        with self._clients.borrow() as client:
            client.raw_insert(
                f"{self.database}.{table}",
                insert_block=data,
                fmt=fmt,
                settings=dict(settings or {}),
            )

    def file_insert(
        self, table: str, path: Path, fmt: str, *, settings: Mapping[str, str | int]
    ) -> int:
        """Insert the rows of a file and return the number of rows that were read.

        Args:
            table: its name, in the store's database.
            path: a `readable_path`, which the embedded engine reads.
            fmt: the format that it is parsed as.
            settings: of the statement.
        """
        given = ", ".join(f"{name} = {_setting(value)}" for name, value in settings.items())
        with self._clients.borrow() as client:
            result = client.query(
                f"INSERT INTO {self.database}.{table} FROM INFILE {literal(str(path))} "
                f"SETTINGS {given} FORMAT {fmt}"
            )
        return int(result.summary["read_rows"])

    def client(self) -> AbstractContextManager[Client]:
        """Borrow a clickhouse-connect client, for operations that this class does not offer."""
        return self._clients.borrow()

    def close(self) -> None:
        """Close every connection; the embedded engine's folder becomes free. May be called twice."""
        for each in list(self._dependents):
            each.close()
        self._clients.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _insert(
        self,
        table: str,
        names: tuple[str, ...],
        columns: Sequence[Sequence[Any]],
        token: str | None,
        settings: Mapping[str, Any],
    ) -> None:
        options = {**settings, **deduplication(token)}
        with self._clients.borrow() as client:
            key = (table, names)
            types = self._column_types.get(key)
            if types is None:
                context = client.create_insert_context(table, list(names), database=self.database)
                types = self._column_types[key] = list(context.column_types)
            context = client.create_insert_context(
                table,
                list(names),
                database=self.database,
                column_types=types,
                column_oriented=True,
                settings=options,
            )
            try:
                client.insert(data=columns, context=context)
            finally:
                # A context refers to itself: its data would stay until garbage is collected.
                context.data = [[]]


def deduplication(token: str | None) -> dict[str, Any]:
    """Return the settings under which an insert with this token happens once, in views as well."""
    if not token:
        return {}
    return {
        "insert_deduplicate": 1,
        "insert_deduplication_token": token,
        "deduplicate_blocks_in_dependent_materialized_views": 1,
    }


def _setting(value: str | int) -> str:
    return literal(value) if isinstance(value, str) else str(value)


def readable_path(path: Path) -> bool:
    """Return whether ClickHouse takes a path for exactly that file."""
    return not _NOT_A_PATH.search(str(path))


def error_code(error: BaseException) -> int | None:
    """Return ClickHouse's number of the error; None where it has none."""
    code = getattr(error.__cause__, "code", None)
    return code if isinstance(code, int) else None


def _given(params: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return parameters that ClickHouse can encode and compare."""
    return {name: _encodable(value, comparable) for name, value in (params or {}).items()}


def _storable(value: Any) -> Any:
    return storable(value) if isinstance(value, datetime) else value


def _encodable(value: Any, near: Callable[[datetime], datetime] = storable) -> Any:
    """Replace characters that UTF-8 cannot encode (lone surrogates), and times too far away, at any depth."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, dict):
        return {_encodable(key, near): _encodable(item, near) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_encodable(item, near) for item in value)
    return near(value) if isinstance(value, datetime) else value
