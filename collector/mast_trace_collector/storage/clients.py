"""Connections to ClickHouse, also over a Unix socket, lent to one caller at a time."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from urllib3 import HTTPConnectionPool, PoolManager
from urllib3.connection import HTTPConnection
from urllib3.exceptions import NewConnectionError

from mast_trace.exceptions import ConfigurationError, StorageError
from mast_trace.urls import check_proxies, conceal
from mast_trace_collector.storage.address import Address, unanswered
from mast_trace_collector.storage.embedded import (
    engine_config,
    holder,
    tune_allocator,
    why_not_loaded,
)

if TYPE_CHECKING:
    from clickhouse_connect.driver.client import Client


SERVER: Final = {
    # The cache confuses conditions with IN (SELECT ...) that differ in a parameter alone: after a
    # filter without matches, other filters had no matches either (seen with ClickHouse 26.9).
    "use_query_condition_cache": "0",
    # Blocks of 1 MB, the default, are so small that sorting merges many of them row by row.
    "preferred_block_size_bytes": str(4 * 1024 * 1024),
}
"""Settings for any ClickHouse."""
EMBEDDED: Final = {
    **SERVER,
    # One more thread for each so many bytes that are free under the engine's limit. The default of
    # 1 GiB leaves one thread to an engine that may use no more than that.
    "max_threads_min_free_memory_per_thread": str(64 * 1024 * 1024),
    # Code that is compiled at its third use has then cost 100 ms, and gains nothing on so little
    # data.
    "compile_expressions": "0",
    "compile_aggregate_expressions": "0",
    "compile_sort_description": "0",
}
"""Settings for the engine in this process."""
_ADVICE = {
    60: "the table is missing: run `mast-trace migrate`",
    81: "the database is missing: run `mast-trace migrate`",
    241: "the query needs more memory than the limit allows: narrow its time range, or raise the limit",
    252: "too many parts wait for a merge: inserts are too small or the disk is too slow",
    243: "the disk is full: free space or lower the retention",
    516: "user or password is wrong",
    497: "the user lacks a right that this needs",
}
"""The advice for each error code."""
_PART = "while reading from part"
_PART_ADVICE = (
    "a file of the database is damaged on disk: restore a backup, or stop what serves the database "
    "and move the folder of the part named here out of it: its rows are lost, all others can be "
    "read again"
)


class SocketPoolManager(PoolManager):
    """Connections that lead to one socket, for any host name.

    Args:
        path: of the socket.
        **options: of urllib3's pool.
    """

    def __init__(self, path: Path, **options: Any) -> None:
        super().__init__(**options)
        self._path = path
        self._pool = _Pool(path)

    def connection_from_host(self, *_: Any, **__: Any) -> HTTPConnectionPool:
        """Return the pool of the socket."""
        return self._pool

    def clear(self) -> None:
        """Close the idle connections; others are opened on demand."""
        super().clear()
        closed, self._pool = self._pool, _Pool(self._path)
        closed.close()


class _Pool(HTTPConnectionPool):
    def __init__(self, path: Path) -> None:
        super().__init__("localhost")
        self._path = path

    def _new_conn(self) -> HTTPConnection:
        return _Connection(self._path, timeout=self.timeout.connect_timeout)


class _Connection(HTTPConnection):
    def __init__(self, path: Path, **options: Any) -> None:
        super().__init__("localhost", **options)
        self._path = path

    def _new_conn(self) -> socket.socket:
        made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            # A number, None, or urllib3's value for the system default.
            made.settimeout(self.timeout if isinstance(self.timeout, int | float) else None)
            made.connect(str(self._path))
        except OSError as error:
            made.close()
            raise NewConnectionError(self, f"cannot connect to {self._path}: {error}") from error
        return made


class Clients:
    """A pool of clients; a thread that finds no idle one opens another.

    Args:
        address: of the database.
        memory_limit: bytes that the embedded engine may use.
        prepare: called with each new client first; an exception of it closes the client.
        **options: see `Store.open`.
    """

    def __init__(
        self,
        address: Address,
        *,
        memory_limit: int,
        prepare: Callable[[Client], None] | None = None,
        **options: Any,
    ) -> None:
        self._address = address
        self._options = options
        self._memory_limit = memory_limit
        self._prepare = prepare
        self._socket = SocketPoolManager(Path(address.socket)) if address.socket else None
        self._idle: list[Client] = []
        self._lock = threading.Lock()
        self._closed = False

    @contextlib.contextmanager
    def borrow(self) -> Iterator[Client]:
        """Lend a client; an error becomes a `StorageError` with advice."""
        from clickhouse_connect.driver.exceptions import ClickHouseError

        client = self._take()
        try:
            yield client
        except BaseException as error:
            self._give_back_failed(client)
            if isinstance(error, ClickHouseError):
                raise StorageError(self._explain(error)) from error
            raise
        self._give_back(client)

    def prepared(self, prepare: Callable[[Client], None]) -> Clients:
        """Return clients of the same database, each of which `prepare` is called with first."""
        return Clients(
            self._address, memory_limit=self._memory_limit, prepare=prepare, **self._options
        )

    def close(self) -> None:
        """Close the idle clients now, and lent ones when they come back."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for client in idle:
            client.close()

    def _take(self) -> Client:
        with self._lock:
            if self._closed:
                raise StorageError(f"the store {self._address.label} has been closed")
            if self._idle:
                return self._idle.pop()
        return self._connect()

    def _give_back(self, client: Client) -> None:
        with self._lock:
            if not self._closed:
                self._idle.append(client)
                return
        client.close()

    def _give_back_failed(self, client: Client) -> None:
        """Drop the embedded engine's output of a failed statement: the next answer would begin with it."""
        if not self._address.path:
            self._give_back(client)
            return
        with contextlib.suppress(Exception):
            client.raw_query("SELECT 1", fmt="Null")
            self._give_back(client)
            return
        client.close()

    def _connect(self) -> Client:
        from clickhouse_connect.driver.exceptions import ClickHouseError

        try:
            client = self._connect_embedded() if self._address.path else self._connect_server()
        except ClickHouseError as error:
            raise StorageError(self._explain(error)) from error
        client.database = self._address.database
        ours = EMBEDDED if self._address.path else SERVER
        wished = {name: ours[name] for name in ours.keys() - self._options["settings"]}
        for name, value in settable(wished, client).items():
            client.set_client_setting(name, value)
        if self._prepare is not None:
            self._prepare_or_close(client, self._prepare)
        return client

    def _prepare_or_close(self, client: Client, prepare: Callable[[Client], None]) -> None:
        from clickhouse_connect.driver.exceptions import ClickHouseError

        try:
            prepare(client)
        except BaseException as error:
            client.close()
            if isinstance(error, ClickHouseError):
                raise StorageError(self._explain(error)) from error
            raise

    def _connect_embedded(self) -> Client:
        import clickhouse_connect

        Path(self._address.path).mkdir(parents=True, exist_ok=True, mode=0o700)
        self._refuse_unusable()
        tune_allocator()
        try:
            with engine_config(
                self._memory_limit, Path(self._address.path), self._address.database
            ) as config:
                return clickhouse_connect.get_client(
                    interface="chdb",
                    path=self._address.path,
                    chdb_options={"config-file": str(config)},
                    settings=self._options["settings"],
                    tz_mode="aware",
                )
        except ImportError as error:
            raise ConfigurationError(
                "the embedded engine is not installed: pip install 'mast-trace[embedded]', "
                "or name a ClickHouse server by http://host:8123"
            ) from error
        except (OSError, RuntimeError) as error:
            if (why := why_not_loaded(error)) is None:
                raise
            raise StorageError(f"cannot open {self._address.label}: {why}") from error

    def _refuse_unusable(self) -> None:
        """Check before the engine does: it writes its findings to standard error itself."""
        folder = Path(self._address.path)
        for path in (folder, folder / "status"):
            if path.exists() and not os.access(path, os.R_OK | os.W_OK):
                raise StorageError(
                    f"cannot open {self._address.label}: this user may not write {path}, and the "
                    "embedded engine writes there even to read; change its owner or name another "
                    "folder by --data-dir"
                )
        taken = holder(self._address.path)
        if taken and taken != f"process {os.getpid()}":
            raise StorageError(self._taken(taken))

    def _taken(self, by: str) -> str:
        return (
            f"cannot open {self._address.label}: {by} is using this folder; it is another "
            "`mast-trace up`: stop it, or reach its data through the ClickHouse address that it "
            "printed"
        )

    def _connect_server(self) -> Client:
        import clickhouse_connect

        check_proxies()
        return clickhouse_connect.get_client(
            dsn=self._address.dsn,
            # The client does not parse a scheme: it would send the password in clear to all ports
            # but two.
            interface="https" if self._address.dsn.startswith("https:") else None,
            settings=self._options["settings"],
            connect_timeout=max(1, round(self._options["connect_timeout"])),
            send_receive_timeout=max(1, round(self._options["timeout"])),
            # A session would serialise the threads that share it.
            autogenerate_session_id=False,
            client_name="mast-trace",
            pool_mgr=self._socket,
            tz_mode="aware",
        )

    def _explain(self, error: Exception) -> str:
        text = conceal(str(error), self._address.url, self._address.dsn)
        label = self._address.label
        if "Unable to open the chdb engine" in text:
            if "different path" in text:
                return (
                    f"cannot open {label}: this process has another folder open already, and the "
                    "embedded engine serves one folder per process; close the other store first"
                )
            if taken := holder(self._address.path):
                return self._taken(taken)
        advice = _ADVICE.get(getattr(error, "code", None) or 0, "")
        if not advice and _PART in text:
            advice = _PART_ADVICE
        if not advice and not self._address.path and (told := unanswered(error, label)):
            return conceal(told, self._address.url, self._address.dsn)
        return f"{label}: {text.strip()}" + (f" ({advice})" if advice else "")


def settable(settings: Mapping[str, Any], client: Client) -> dict[str, Any]:
    """Return those of some settings that the engine knows and this client's user may set."""
    known = client.server_settings
    return {
        name: value
        for name, value in settings.items()
        if name in known and not known[name].readonly
    }
