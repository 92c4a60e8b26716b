"""Stores for tests: embedded, or on the ClickHouse server that the environment names.

``MAST_TRACE_TEST_CLICKHOUSE`` is a server's address, ``http://user:password@host:8123``, or `own`,
which starts one with the engine of this environment. Each test gets a database of its own.
"""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import sys
import tempfile
import uuid
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mast_trace_collector.storage import Store, migrate

if TYPE_CHECKING:
    from collections.abc import Iterator

SERVER = os.environ.get("MAST_TRACE_TEST_CLICKHOUSE", "")

_FILLED = """
    SELECT name FROM system.tables WHERE database = currentDatabase()
    AND engine LIKE '%MergeTree' AND name != 'mast_schema_migrations'
    AND name IN (SELECT table FROM system.parts WHERE database = currentDatabase())"""
_DEFINITIONS = """
    SELECT toString(cityHash64(groupArray((name, create_table_query, Applied)))) FROM (
      SELECT name, create_table_query, if(name = 'mast_schema_migrations', total_rows, 0) AS Applied
      FROM system.tables WHERE database = '{database}' ORDER BY name
    )"""
_APPLIED = """
    SELECT total_rows FROM system.tables WHERE database = '{database}' AND name = 'mast_schema_migrations'"""


class Tables:
    """The tables of a store that many tests use one after the other, each as if it were new.

    Making them costs a second. They are emptied instead, and made again where a test has left others.
    """

    def __init__(self, store: Store, *, made: bool = False) -> None:
        self._store = store
        self._known = self._definitions() if made else None

    def renew(self) -> None:
        """Leave all tables, and nothing in them."""
        if self._known is None or self._known != self._definitions():
            database = self._store.database
            # A server of 25.8 waits for ever when it is to wait for the tables' end.
            sync = "" if SERVER else " SYNC"
            self._store.command(f"DROP DATABASE IF EXISTS {database}{sync}", use_database=False)
            migrate(self._store)
            self._known = self._definitions()
            return
        for (name,) in (row.values() for row in self._store.query(_FILLED)):
            self._store.command(f"TRUNCATE TABLE `{name}`")

    def _definitions(self) -> object:
        """Return what differs once a table, or a version of the schema, is another one."""
        if self._store.embedded_path:
            # A definition is a file. To ask for their texts takes the engine 30 ms.
            files = sorted(Path(self._store.embedded_path).glob("store/*/*/*.sql"))
            stats = [(str(file), file.stat().st_mtime_ns) for file in files]
            found = _APPLIED.format(database=self._store.database)
            return stats, self._store.command(found, use_database=False)
        found = _DEFINITIONS.format(database=self._store.database)
        return self._store.command(found, use_database=False)


@contextmanager
def new_store(folder: Path) -> Iterator[Store]:
    """A store with all tables: embedded in ``folder``, or in a new database of the server."""
    if not SERVER:
        with Store.open(f"chdb://{folder}") as store:
            migrate(store)
            yield store
        return
    database = f"test_{uuid.uuid4().hex}"
    with Store.open(server_address(), database=database) as store:
        migrate(store)
        yield store
        store.command(f"DROP DATABASE {database}", use_database=False)


@contextmanager
def copied_tables() -> Iterator[None]:
    """Give each new embedded store its tables as a copy, which takes a tenth of the time of making them."""
    opens = Store.__dict__["open"]

    def open_(cls: type[Store], url: str, **options: Any) -> Store:
        folder = Path(url.removeprefix("chdb://"))
        is_new = url.startswith("chdb://") and (not folder.exists() or not any(folder.iterdir()))
        if is_new and options.get("database") is None:
            shutil.copytree(_made_tables(), folder, symlinks=True, dirs_exist_ok=True)
        return opens.__get__(None, cls)(url, **options)

    Store.open = classmethod(open_)  # type: ignore[method-assign, assignment]
    try:
        yield
    finally:
        Store.open = opens  # type: ignore[method-assign]


@cache
def _made_tables() -> Path:
    """Return a folder with all tables, made by another process: this one's engine serves one folder at a time."""
    folder = tempfile.TemporaryDirectory(prefix="mast-trace-tables-")
    atexit.register(folder.cleanup)
    made = Path(folder.name, "store")
    make = "import sys, stores; stores.new_store(sys.argv[1]).__enter__().close()"
    places = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    subprocess.run(
        [sys.executable, "-c", make, str(made)],
        env={**os.environ, "PYTHONPATH": places},
        check=True,
    )
    return made


@cache
def server_address() -> str:
    """Address of the server, which is started if it is our own."""
    if SERVER != "own":
        return SERVER
    folder = tempfile.TemporaryDirectory(prefix="mast-trace-clickhouse-")
    atexit.register(folder.cleanup)
    process = subprocess.Popen(
        [sys.executable, Path(__file__).with_name("clickhouse_server.py"), folder.name],
        stdout=subprocess.PIPE,
        text=True,
    )
    atexit.register(process.wait)
    atexit.register(process.terminate)
    assert process.stdout is not None
    address = process.stdout.readline().strip()
    assert address, "the ClickHouse server did not start"
    return address
