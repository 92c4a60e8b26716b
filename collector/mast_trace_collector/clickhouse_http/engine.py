"""Connections to the embedded engine that answer in any output format."""

from __future__ import annotations

import contextlib
import re
import tempfile
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from mast_trace_collector.clickhouse_http.errors import (
    BAD_ARGUMENTS,
    EngineError,
    QueryError,
    denied,
)
from mast_trace_collector.clickhouse_http.rendering import quoted
from mast_trace_collector.storage.span_sql import literal

_SETTING = re.compile(r"[a-z_][a-z0-9_]*")
_SEVERAL = "Multi-statements are not allowed"


@dataclass(frozen=True)
class EngineResult:
    """The result of a statement, with its cost."""

    body: bytes
    rows: int = 0
    read_bytes: int = 0
    seconds: float = 0.0


class Handle:
    """One connection; used by one thread at a time.

    The engine keeps the output of a statement that failed, and begins the connection's next answer
    with it. So that output is fetched and dropped at once, and the connection is not used again.

    Args:
        path: the engine's folder.
        settings: of this connection; those of a request come on top.

    Attributes:
        has_failed: whether a statement has failed.
    """

    def __init__(self, path: str, settings: Mapping[str, str]) -> None:
        import chdb

        self._connection = chdb.connect(path)
        self._database = ""
        self._settings = settings
        self.has_failed = False
        for name, value in settings.items():
            self._set(name, value)

    def use(self, database: str) -> None:
        """Make ``database`` the current one."""
        if database != self._database:
            self.do(f"USE {quoted(database)}")
            self._database = database

    def run(self, sql: str, fmt: str, params: Mapping[str, str] | None = None) -> EngineResult:
        """Run a statement to its end."""
        with self._errors():
            result = self._connection.query(sql, fmt, params=dict(params or {}))
            return EngineResult(
                result.bytes() or b"", result.rows_read(), result.bytes_read(), result.elapsed()
            )

    def text(self, sql: str, params: Mapping[str, str] | None = None) -> str:
        """Return the rows of a SELECT as lines of values between tabs, unparsed."""
        return _decoded(self.run(sql, "TabSeparatedRaw", params).body)

    def do(self, sql: str) -> None:
        """Run a statement without result rows."""
        self.run(sql, "Null")

    def blocks(self, sql: str, fmt: str, params: Mapping[str, str] | None = None) -> list[bytes]:
        """Run a SELECT and return its blocks one by one."""
        with (
            self._errors(),
            self._connection.send_query(sql, fmt, params=dict(params or {})) as s,
        ):
            return [block.bytes() for block in s]

    def insert(self, sql: str, fmt: str, data: bytes) -> EngineResult:
        """Run an INSERT whose rows are ``data``."""
        # The engine's streaming insert reports success even where a constraint or the disk
        # refused the rows; a file does not.
        with tempfile.NamedTemporaryFile(prefix="mast-trace-insert-") as file:
            file.write(data)
            file.flush()
            return self.run(f"{sql} FROM INFILE {literal(file.name)} FORMAT {fmt}", "TabSeparated")

    def canonical(self, sql: str) -> str:
        """Return a statement as the engine renders it after parsing, on one line.

        Raises:
            QueryError: it cannot be parsed, or is more than one statement.
        """
        try:
            result = self.run(f"SELECT formatQuerySingleLine({literal(sql)})", "RawBLOB")
        except EngineError as error:
            if _SEVERAL in error.text:
                raise denied("one statement at a time") from error
            raise
        return _decoded(result.body)

    @contextlib.contextmanager
    def settings(self, values: Mapping[str, str]) -> Iterator[None]:
        """Apply settings to the statements inside the block only."""
        applied = []
        try:
            for name, value in values.items():
                self.keep(name, value)
                applied.append(name)
            yield
        finally:
            for name in applied:
                self._set(name, self._settings.get(name))

    def keep(self, name: str, value: str) -> None:
        """Apply a setting to all statements from now on."""
        if not _SETTING.fullmatch(name):
            raise QueryError(BAD_ARGUMENTS, f"{name!r} is no name of a setting", "BAD_ARGUMENTS")
        self._set(name, value)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        """Convert the engine's exceptions (plain RuntimeErrors among them) to `EngineError`."""
        try:
            yield
        except Exception as error:
            self.has_failed = True
            with contextlib.suppress(Exception):
                self._connection.query("SELECT 1", "Null")
            # The text may quote a name that is not valid UTF-8.
            named = _decoded(error.object) if isinstance(error, UnicodeDecodeError) else ""
            raise EngineError(named or str(error)) from error

    def _set(self, name: str, value: str | None) -> None:
        self.do(f"SET {name} = {'DEFAULT' if value is None else literal(value)}")


class Handles:
    """Idle handles of one kind.

    Args:
        path: the engine's folder.
        settings: of each handle.
    """

    def __init__(self, path: str, settings: Mapping[str, str]) -> None:
        self._path = path
        self._settings = settings
        self._idle: list[Handle] = []
        self._lock = threading.Lock()
        self._closed = False

    @contextlib.contextmanager
    def borrow(self) -> Iterator[Handle]:
        """Lend a handle; discard it if its statement failed."""
        handle = self._take()
        try:
            yield handle
        except QueryError:
            self._give_back(handle)
            raise
        except BaseException:
            handle.close()
            raise
        self._give_back(handle)

    def close(self) -> None:
        """Close all of them; lent ones when they come back."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for handle in idle:
            handle.close()

    def _take(self) -> Handle:
        with self._lock:
            if self._idle:
                return self._idle.pop()
        return Handle(self._path, self._settings)

    def _give_back(self, handle: Handle) -> None:
        with self._lock:
            if not (self._closed or handle.has_failed):
                self._idle.append(handle)
                return
        handle.close()


def _decoded(data: bytes) -> str:
    """Return text that the engine wrote, with SQL's escapes for bytes that are not valid UTF-8."""
    return data.decode("utf-8", "backslashreplace")
