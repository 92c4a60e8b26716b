"""The peers that accept OTLP: their commands, as documented, and the count of their spans."""

from __future__ import annotations

import os
import socket
import sqlite3
import sys
import time
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from environments import environment
from rotel_process import QUERY_FILE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Peer:
    """A server that is measured.

    Attributes:
        name: in the table.
        requirements: of its environment.
        command: starts it in a folder of its own, on a port.
        environment: environment variables, from the same arguments.
        ready: the path that answers once it takes spans; empty if only its port tells.
        headers: those that its receiver requires.
        count: the spans in its database; the folder is given.
        acknowledges: the meaning of an acknowledgement.
        spans: as many as it needs some seconds for.
        request_spans: in a request; with 512, some peers time out.
        connections: number of connections that send to it.
    """

    name: str
    requirements: tuple[str, ...]
    command: Callable[[Path, int], list[str]]
    count: Callable[[Path], int]
    acknowledges: str
    spans: int
    request_spans: int = 64
    connections: int = 4
    ready: str = "/"
    environment: Callable[[Path, int], Mapping[str, str]] = lambda _folder, _port: {}
    headers: Mapping[str, str] = field(default_factory=dict)

    def wait_until_ready(self, port: int, seconds: float = 180.0) -> None:
        """Wait for the server's first answer.

        Raises:
            TimeoutError: there is none in time.
        """
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            try:
                if self.ready:
                    urllib.request.urlopen(
                        f"http://127.0.0.1:{port}{self.ready}", timeout=5
                    ).close()
                else:
                    socket.create_connection(("127.0.0.1", port), timeout=5).close()
            except OSError:
                time.sleep(0.2)
            else:
                return
        raise TimeoutError(f"{self.name} did not start in {seconds:.0f} s")


def _rows(database: Path, table: str) -> int:
    if not database.exists():
        return 0
    try:
        connection = sqlite3.connect(f"file:{database}?mode=ro", uri=True, timeout=10)
        try:
            return int(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0])
        finally:
            connection.close()
    except sqlite3.OperationalError:
        return 0  # locked by the writer, or not created yet: asked again


def _rows_in_clickhouse(folder: Path) -> int:
    with urllib.request.urlopen((folder / QUERY_FILE).read_text()) as answer:
        return int(answer.read())


def _rotel(tables: str, name: str) -> Peer:
    requirements = ("rotel==0.0.1a15",)

    def command(folder: Path, port: int) -> list[str]:
        python = environment("ingest/rotel", requirements)
        program = next(python.parents[1].rglob("rotel-agent"))
        process = (sys.executable, str(HERE / "rotel_process.py"))
        return [*process, str(folder), str(port), str(program), tables]

    return Peer(
        name=name,
        requirements=requirements,
        command=command,
        ready="",
        count=_rows_in_clickhouse,
        acknowledges="in memory",
        spans=200_192,
        request_spans=512,
        connections=8,
    )


PEERS = (
    Peer(
        name="mlflow",
        requirements=("mlflow==3.17.2",),
        command=lambda folder, port: [
            *("mlflow", "server", "--host", "127.0.0.1", "--port", str(port), "--workers", "1"),
            *("--backend-store-uri", f"sqlite:///{folder / 'mlflow.db'}"),
            *("--artifacts-destination", str(folder / "artifacts")),
        ],
        ready="/health",
        headers={"x-mlflow-experiment-id": "0"},
        count=lambda folder: _rows(folder / "mlflow.db", "spans"),
        acknowledges="stored",
        spans=2_048,
    ),
    Peer(
        name="arize-phoenix",
        requirements=("arize-phoenix==20.26.1",),
        command=lambda _folder, _port: ["phoenix", "serve"],
        environment=lambda folder, port: {
            "PHOENIX_WORKING_DIR": str(folder),
            "PHOENIX_PORT": str(port),
            "PHOENIX_HOST": "127.0.0.1",
            "PHOENIX_GRPC_PORT": str(port + 1),
            "PHOENIX_TELEMETRY_ENABLED": "false",
        },
        ready="/healthz",
        count=lambda folder: _rows(folder / "phoenix.db", "spans"),
        acknowledges="in memory",
        spans=512,
    ),
    _rotel("ours", "rotel, our tables"),
    _rotel("exporter", "rotel, its own tables"),
)


def environment_of(folder: Path, port: int, peer: Peer) -> dict[str, str]:
    """The environment variables of a peer's process."""
    return {**os.environ, **peer.environment(folder, port)}
