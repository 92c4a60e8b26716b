"""A ClickHouse server of this environment's version: its engine behind our HTTP endpoint.

No server's package can be installed where the tests run, but engines of several versions can. The
process prints its address and serves until it is stopped.

::

    python tests/clickhouse_server.py FOLDER
"""

from __future__ import annotations

import socket
import sys

import chdb
import uvicorn

from mast_trace_collector.clickhouse_http import ClickHouseHTTP
from mast_trace_collector.storage import Store
from mast_trace_collector.storage.span_sql import literal

WRITE_TOKEN = "writers-token"


def adapt_engine_of_25() -> None:
    """Give chdb 3 what later ones have: parameters of a query, and settings for each connection."""
    from chdb.state.sqlitelike import Connection

    query = Connection.query

    def query_with_parameters(self, sql, fmt="CSV", params=None):
        for name, value in (params or {}).items():
            query(self, f"SET param_{name} = {literal(str(value))}", "TabSeparated")
        # All connections share one session there; this one would end all writing.
        return query(self, "SELECT 1" if sql.startswith("SET readonly") else sql, fmt)

    Connection.query = query_with_parameters


def main() -> None:
    """Serve the engine in a folder."""
    early = chdb.__version__.startswith("3.")
    if early:
        adapt_engine_of_25()
    with Store.open(f"chdb://{sys.argv[1]}?database=default", memory_limit=4 * 2**30) as store:
        if early:
            # Left out of this build of the engine. What it gives is not looked at: this version
            # does not read requests by itself.
            made_up = "CREATE FUNCTION base64Encode AS (data) -> hex(data)"
            store.command(made_up, use_database=False)
        queries = 1 if early else 4
        app = ClickHouseHTTP(store, of_owner=True, max_queries=queries)
        listener = socket.create_server(("127.0.0.1", 0))
        host, port = listener.getsockname()
        sys.stdout.write(f"http://tests:{WRITE_TOKEN}@{host}:{port}\n")
        sys.stdout.flush()
        uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[listener])


if __name__ == "__main__":
    main()
