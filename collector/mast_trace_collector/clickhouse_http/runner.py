"""Runs statements for the endpoint: applies rights, and formats the rows."""

from __future__ import annotations

import json
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from mast_trace_collector.clickhouse_http import rendering as native
from mast_trace_collector.clickhouse_http.confinement import MAX_STATEMENT, Confinement
from mast_trace_collector.clickhouse_http.engine import EngineResult, Handle, Handles
from mast_trace_collector.clickhouse_http.errors import EngineError, denied
from mast_trace_collector.clickhouse_http.planning import Planner
from mast_trace_collector.storage.clients import EMBEDDED
from mast_trace_collector.storage.readers import CATALOGUE

if TYPE_CHECKING:
    from mast_trace_collector.clickhouse_http.statement import Statement
    from mast_trace_collector.storage.store import Store

_NATIVE = "Native"
_VERSION = "SELECT version()"


@dataclass(frozen=True)
class Rights:
    """The rights of a client.

    Attributes:
        writes: run any statement.
        project: read the rows of this project only; None means all.
    """

    writes: bool = False
    project: str | None = None


class Runner:
    """Runs statements on the embedded engine.

    Args:
        store: the store that owns the engine.
        timeout: seconds that a reader's statement may run.
        max_result: bytes that a reader's result may have.
        readers: whether there are any; without, only clients with all rights are served.

    Raises:
        ConfigurationError: there are readers, and the engine does not keep them apart.
    """

    def __init__(
        self, store: Store, *, timeout: float, max_result: int, readers: bool = True
    ) -> None:
        self._open = ExitStack()
        settings = _known_settings(store)
        self._writers = Handles(store.embedded_path, settings)
        self._open.callback(self._writers.close)
        self._planner: Planner | None = None
        if readers:
            with ExitStack() as opening:
                opening.push(self._open)
                self._open_for_readers(store, settings, timeout, max_result)
                opening.pop_all()
        with self._writers.borrow() as handle:
            self._version = handle.text(_VERSION).strip()

    def _open_for_readers(
        self, store: Store, settings: dict[str, str], timeout: float, max_result: int
    ) -> None:
        limits = {
            **settings,
            "max_execution_time": str(timeout),
            "max_query_size": str(MAX_STATEMENT),
            # The number of read rows would reveal how many others have.
            "output_format_write_statistics": "0",
            "readonly": "2",
        }
        self._planning = Handles(store.embedded_path, limits)
        self._open.callback(self._planning.close)
        bounds = {"max_result_bytes": str(max_result), "result_overflow_mode": "throw"}
        self._readers = Handles(store.embedded_path, {**limits, **bounds})
        self._open.callback(self._readers.close)
        self._confinement = self._open.enter_context(
            Confinement.of(store.embedded_path, store.database, settings)
        )
        with self._planning.borrow() as handle:
            self._planner = Planner(handle, self._confinement, store.database)

    def run(self, statement: Statement, rights: Rights) -> EngineResult:
        """Run a statement and return its rows.

        Raises:
            QueryError: it failed, or a reader must not run it.
        """
        if rights.writes:
            return self._write(statement)
        if self._planner is None:
            raise denied("it serves no readers")
        try:
            result = self._read(self._planner, statement, rights.project)
        except EngineError as error:
            raise error.for_reader() from error
        return EngineResult(result.body)

    def _read(self, planner: Planner, statement: Statement, project: str | None) -> EngineResult:
        with self._planning.borrow() as handle:
            plan = planner.plan(handle, statement)
        if plan.is_hello and statement.protocol >= native.PROTOCOL_WITH_BLOCK_INFO:
            return EngineResult(native.hello(self._version))
        with self._readers.borrow() as handle, ExitStack() as stack:
            stack.enter_context(handle.settings(plan.settings))
            # Needed for currentDatabase() alone; names were resolved before.
            handle.use("system" if plan.database == CATALOGUE else plan.database)
            sql = plan.before + plan.select
            if plan.confined:
                view = self._confinement.view(plan.select, project, plan.database)
                sql = f"{plan.before}SELECT * FROM {stack.enter_context(view)}{plan.after}"
            asked = replace(statement, sql=sql, default_format=plan.format, params={})
            return self._rows(handle, asked)

    def close(self) -> None:
        """Close the engine's connections."""
        self._open.close()

    def _write(self, statement: Statement) -> EngineResult:
        with self._writers.borrow() as handle:
            # Reset settings of earlier statements on this connection. The statement that creates
            # the store's database must not need them.
            handle.use(statement.database or "default")
            with handle.settings(statement.settings):
                if statement.data is not None:
                    text = statement.without_format
                    return handle.insert(text, statement.format, statement.data)
                return self._rows(handle, statement)

    def _rows(self, handle: Handle, statement: Statement) -> EngineResult:
        if statement.format != _NATIVE or not statement.has_result:
            return handle.run(statement.sql, statement.default_format, statement.params)
        if statement.protocol >= native.PROTOCOL_WITH_BLOCK_INFO:
            return self._blocks(handle, statement)
        result = handle.run(statement.sql, _NATIVE, statement.params)
        if result.body:
            return result
        return replace(result, body=self._header(handle, statement))

    def _blocks(self, handle: Handle, statement: Statement) -> EngineResult:
        """Answer a client that expects a header before each block (clickhouse-go)."""
        if statement.sql == native.HELLO:
            return EngineResult(native.hello(self._version))
        if statement.is_select:
            blocks = handle.blocks(statement.sql, _NATIVE, statement.params)
        else:
            blocks = [handle.run(statement.sql, _NATIVE, statement.params).body]
        blocks = blocks if any(blocks) else [self._header(handle, statement)]
        return EngineResult(b"".join(native.BLOCK_INFO + block for block in blocks if block))

    def _header(self, handle: Handle, statement: Statement) -> bytes:
        """The block with an empty result's columns, which the engine leaves out."""
        if not statement.is_select:
            return b""
        sql = f"DESCRIBE TABLE ({statement.without_format}\n)"
        # As JSON: the client chooses the names, which may hold separators of lines and fields.
        rows = handle.run(sql, "JSONCompactEachRow", statement.params).body
        # Names may also be invalid UTF-8.
        columns = [json.loads(row.decode("utf-8", "surrogateescape")) for row in rows.splitlines()]
        return native.header([(name, kind) for name, kind, *_ in columns])


def _known_settings(store: Store) -> dict[str, str]:
    """Return the settings of `EMBEDDED` that the store's engine knows: earlier versions lack some."""
    rows = store.query(
        "SELECT name FROM system.settings WHERE name IN {names:Array(String)}",
        {"names": list(EMBEDDED)},
    )
    return {row["name"]: EMBEDDED[row["name"]] for row in rows}
