"""rotel as a collector in front of the embedded engine, which is that of our collector.

The engine runs in this process, behind the ClickHouse address that `mast-trace up` serves; rotel is
its child. Arguments: a folder, the port of OTLP/HTTP, the path of rotel's program, and whose tables
it writes into: ours, or the exporter's.
"""

from __future__ import annotations

import asyncio
import secrets
import subprocess
import sys
from pathlib import Path

from mast_trace_collector.clickhouse_http.app import ClickHouseHTTP
from mast_trace_collector.config import CollectorConfig
from mast_trace_collector.http_server.server import HTTPServer
from mast_trace_collector.storage import Store, migrate
from mast_trace_collector.storage.address import parse_address

QUERY_FILE = "count-url"
_EXPORTER_TABLES = Path(__file__).parent / "exporter_tables.sql"


def agent(program: str, port: str, address: str, database: str, token: str) -> list[str]:
    """The command that starts rotel.

    Uncompressed, because our endpoint does not accept the native protocol's LZ4.
    """
    options = {
        "otlp-http-endpoint": f"127.0.0.1:{port}",
        "otlp-grpc-endpoint": "127.0.0.1:0",
        "exporter": "clickhouse",
        "clickhouse-exporter-endpoint": address,
        "clickhouse-exporter-database": database,
        "clickhouse-exporter-user": "writer",
        "clickhouse-exporter-password": token,
        "clickhouse-exporter-compression": "none",
    }
    given = (part for key, value in options.items() for part in (f"--{key}", value))
    return [program, "start", *given]


def make_tables(store: Store, url: str, tables: str) -> str:
    """Make the tables that rotel is to fill, and return their database."""
    migrate(store)
    if tables == "ours":
        return parse_address(url).database
    for statement in _EXPORTER_TABLES.read_text().split(";\n"):
        if statement.strip():
            store.command(statement)
    return "otel"


def main() -> None:
    folder, port, program, tables = sys.argv[1:]
    config = CollectorConfig.load(data_dir=folder)
    token = secrets.token_hex()
    # Under our own limit its inserts fail, and their repetition is empty.
    with Store.open(config.store_url, memory_limit=8 * 2**30) as store:
        database = make_tables(store, config.store_url, tables)
        server = HTTPServer(ClickHouseHTTP(store, of_owner=True), "127.0.0.1", 0)

        async def serve() -> None:
            await server.start()
            query = f"SELECT+count()+FROM+{database}.otel_traces"
            note = Path(folder, QUERY_FILE)
            await asyncio.to_thread(note.write_text, f"{server.address}/?query={query}")
            command = agent(program, port, server.address, database, token)
            await asyncio.to_thread(subprocess.run, command, cwd=folder, check=True)

        asyncio.run(serve())


if __name__ == "__main__":
    main()
