"""Runs statements for the endpoint: who may do what, and in which form the rows go back."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from mast_trace_collector.clickhouse_http import native
from mast_trace_collector.clickhouse_http.engine import Handle, Handles, Result
from mast_trace_collector.clickhouse_http.errors import denied
from mast_trace_collector.clickhouse_http.gate import Gate
from mast_trace_collector.clickhouse_http.projects import confine
from mast_trace_collector.storage.statement_settings import known_settings

if TYPE_CHECKING:
    from mast_trace_collector.clickhouse_http.statement import Statement
    from mast_trace_collector.storage.store import Store

_READABLE = frozenset({"system", "information_schema", "INFORMATION_SCHEMA"})


@dataclass(frozen=True)
class Rights:
    """What a client may do.

    Attributes:
        writes: run any statement.
        project: read the rows of this project only; None means all.
    """

    writes: bool = False
    project: str | None = None


class Runner:
    """Runs statements on the embedded engine.

    Args:
        store: whose engine it is.
        timeout: seconds that a reader's statement may run.
        max_result: bytes that a reader's result may have.
    """

    def __init__(self, store: Store, *, timeout: float, max_result: int) -> None:
        self._database = store.database
        self._path = store.embedded_path
        settings = known_settings(store)
        self._limits = {
            **settings,
            "max_execution_time": str(timeout),
            "max_result_bytes": str(max_result),
            "result_overflow_mode": "throw",
        }
        self._readers = Handles(store.embedded_path, {**self._limits, "readonly": "2"})
        self._writers = Handles(store.embedded_path, settings)
        with self._readers.borrow() as handle:
            self._gate = Gate(handle)
            self._version = handle.run("SELECT version()", "TabSeparated").body.decode().strip()

    def run(self, statement: Statement, rights: Rights) -> Result:
        """Run a statement and return its rows.

        Raises:
            QueryError: it failed, or a reader must not run it.
        """
        if rights.writes:
            return self._write(statement)
        if rights.project is not None:
            return self._read_project(statement, rights.project)
        with self._readers.borrow() as handle:
            canonical = self._checked(handle, statement)
            with handle.settings(statement.settings):
                return self._rows(handle, canonical)

    def _read_project(self, statement: Statement, project: str) -> Result:
        """Read with a connection that serves this statement alone; opening one takes a millisecond."""
        handle = Handle(self._path, self._limits)
        try:
            canonical = self._checked(handle, statement)
            for name, value in statement.settings.items():
                handle.keep(name, value)
            confine(handle, project, self._database)
            return self._rows(handle, canonical)
        finally:
            handle.close()

    def _checked(self, handle: Handle, statement: Statement) -> Statement:
        """Return a reader's statement as the engine renders it.

        Raises:
            QueryError: a reader must not run it.
        """
        handle.use(self._readable(statement.database))
        canonical = self._gate.check(handle, statement.sql)
        self._gate.check_format(statement.default_format)
        for name in statement.settings:
            self._gate.check_setting(name)
        return replace(statement, sql=canonical)

    def close(self) -> None:
        """Let go of the engine."""
        self._readers.close()
        self._writers.close()

    def _write(self, statement: Statement) -> Result:
        with self._writers.borrow() as handle:
            # The statement that makes the database must not need it.
            if statement.database and statement.database != "default":
                handle.use(statement.database)
            with handle.settings(statement.settings):
                if statement.data is not None:
                    text = statement.without_format
                    return handle.insert(text, statement.format, statement.data)
                return self._rows(handle, statement)

    def _rows(self, handle: Handle, statement: Statement) -> Result:
        if statement.format != "Native" or not statement.has_result:
            return handle.run(statement.sql, statement.default_format, statement.params)
        if statement.protocol >= native.PROTOCOL_WITH_BLOCK_INFO:
            return self._blocks(handle, statement)
        result = handle.run(statement.sql, "Native", statement.params)
        if result.body:
            return result
        return replace(result, body=self._header(handle, statement))

    def _blocks(self, handle: Handle, statement: Statement) -> Result:
        """Answer a client that reads each block with what precedes it (clickhouse-go)."""
        if statement.sql == native.HELLO:
            return Result(native.hello(self._version), rows=1)
        if statement.sql.lstrip("( ").upper().startswith(("SELECT", "WITH")):
            blocks = handle.blocks(statement.sql, "Native", statement.params)
        else:
            blocks = [handle.run(statement.sql, "Native", statement.params).body]
        blocks = [block for block in blocks if block] or [self._header(handle, statement)]
        return Result(b"".join(native.BLOCK_INFO + block for block in blocks))

    def _header(self, handle: Handle, statement: Statement) -> bytes:
        """The block that tells an empty result's columns, which the engine leaves out."""
        sql = f"DESCRIBE TABLE ({statement.without_format})"
        if not statement.sql.lstrip("( ").upper().startswith(("SELECT", "WITH")):
            return b""
        rows = handle.run(sql, "TabSeparatedRaw", statement.params).body.decode()
        columns = [line.split("\t") for line in rows.splitlines()]
        return native.header([(name, kind) for name, kind, *_ in columns])

    def _readable(self, database: str) -> str:
        if database in {"", "default", self._database}:
            return self._database
        if database in _READABLE:
            return database
        raise denied(f"the database {database} is not allowed")
