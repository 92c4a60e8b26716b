"""Stores for tests: embedded, or on the ClickHouse server that the environment names.

``MAST_TRACE_TEST_CLICKHOUSE`` is a server's address, ``http://user:password@host:8123``, or `own`,
which starts one with the engine of this environment. Each test gets a database of its own.
"""

from __future__ import annotations

import atexit
import os
import subprocess
import sys
import tempfile
import uuid
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from mast_trace_collector.storage import Store, migrate

if TYPE_CHECKING:
    from collections.abc import Iterator

SERVER = os.environ.get("MAST_TRACE_TEST_CLICKHOUSE", "")


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
