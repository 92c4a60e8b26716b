"""Runs one collector with the embedded engine, for the tests that kill it.

``serve DATA_DIR`` prints a line of JSON with its addresses and serves until SIGTERM;
``query DATA_DIR SQL`` prints rows; ``database DATA_DIR PORT`` serves the embedded engine over HTTP,
as a database server that a collector can lose. Settings come from the environment.
"""

# ruff: noqa: T201  # its output is what the tests read

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
from typing import TYPE_CHECKING, Any

from mast_trace.exceptions import StorageError
from mast_trace_collector.clickhouse_http import ClickHouseHTTP
from mast_trace_collector.collector import Collector
from mast_trace_collector.config import CollectorConfig
from mast_trace_collector.http_server.server import HTTPServer
from mast_trace_collector.logs import configure_logging
from mast_trace_collector.spool.deduplication import StoredMarks
from mast_trace_collector.storage import Store, migrate
from mast_trace_collector.storage.span_writer import DEFAULT_PARSE_FROM, SpanWriter

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class DyingWriter(SpanWriter):
    """Kills the process around an insert, or stores nothing, where a test asks for it."""

    point = os.environ.get("DIE_AT", "")

    def write(self, requests: Sequence[bytes], **options: Any) -> int:
        with self.dying():
            return super().write(requests, **options)

    def write_file(self, path: Path, *, size: int, **options: Any) -> bool | None:
        if size < self._parse_from:
            return None
        with self.dying():
            return super().write_file(path, size=size, **options)

    @contextlib.contextmanager
    def dying(self) -> Iterator[None]:
        if "STORE_NOTHING" in os.environ:
            raise StorageError("a test keeps the database away")
        if self.point == "before_insert":
            die()
        yield
        if self.point == "after_insert":
            die()


def die_after_marking() -> None:
    write = StoredMarks.write

    def marked(self: StoredMarks, *arguments: Any) -> None:
        write(self, *arguments)
        die()

    StoredMarks.write = marked


async def serve(config: CollectorConfig) -> None:
    store = Store.open(config.store_url)
    migrate(store)
    if DyingWriter.point == "after_mark":
        die_after_marking()
    writer = DyingWriter(store, parse_from=int(os.environ.get("PARSE_FROM", DEFAULT_PARSE_FROM)))
    collector = Collector(config, store, writer=writer)
    stopped = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
    await collector.start()
    print(json.dumps({"http": collector.http_address, "grpc": collector.grpc_address}), flush=True)
    await stopped.wait()
    await collector.stop()
    store.close()


async def serve_database(config: CollectorConfig, port: int) -> None:
    with Store.open(config.store_url) as store:
        migrate(store)
        app = ClickHouseHTTP(store, of_owner=True)
        server = HTTPServer(app, "127.0.0.1", port)
        await server.start()
        print(json.dumps({"http": server.address}), flush=True)
        await asyncio.Event().wait()


def main() -> None:
    config = CollectorConfig.load(data_dir=sys.argv[2])
    configure_logging(config)
    if sys.argv[1] == "serve":
        asyncio.run(serve(config))
    elif sys.argv[1] == "database":
        asyncio.run(serve_database(config, int(sys.argv[3])))
    else:
        store = Store.open(config.store_url)
        print(json.dumps(store.query(sys.argv[3]), default=str))
        store.close()


if __name__ == "__main__":
    main()
