"""The peers that take OTLP, each as its documentation starts it, and how its spans are counted."""

from __future__ import annotations

import os
import sqlite3
import time
import urllib.request
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path


@dataclass(frozen=True)
class Peer:
    """A server that is measured.

    Attributes:
        name: in the table.
        requirements: what its environment holds.
        command: how it is started in a folder of its own, on a port.
        environment: variables that it is started with, of the same.
        ready: the path that answers once it takes spans.
        headers: that its receiver asks for.
        count: the spans in its database; the folder is given.
        acknowledges: what an acknowledgement means.
    """

    name: str
    requirements: tuple[str, ...]
    command: Callable[[Path, int], list[str]]
    count: Callable[[Path], int]
    acknowledges: str
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
                with urllib.request.urlopen(f"http://127.0.0.1:{port}{self.ready}", timeout=5):
                    return
            except OSError:
                time.sleep(0.2)
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
    ),
)


def environment_of(folder: Path, port: int, peer: Peer) -> dict[str, str]:
    """The environment variables of a peer's process."""
    return {**os.environ, **peer.environment(folder, port)}
