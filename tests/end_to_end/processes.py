"""Starts and ends the processes of the end-to-end tests."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from program_runs import run_program

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

HERE = Path(__file__).parent
SETTINGS = {
    # Small and young segments, so that a kill often falls between two steps.
    "MAST_TRACE_BATCH_MAX_BYTES": "65536",
    "MAST_TRACE_BATCH_MAX_AGE_SECONDS": "0.05",
    "MAST_TRACE_SPOOL_MIN_FREE_BYTES": "0",
    "MAST_TRACE_GRPC_PORT": "0",
    # Hundreds of such small segments may wait after many kills on a busy machine.
    "MAST_TRACE_DRAIN_TIMEOUT_SECONDS": "300",
}


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


class CollectorProcess:
    """A collector, or only a database, that can be killed and started again over its folder."""

    def __init__(self, data_dir: Path, *, database_only: bool = False, **settings: object) -> None:
        self.data_dir = data_dir
        self._database_only = database_only
        self.port = free_port()
        self.log = data_dir.with_suffix(".log")
        self._settings = {key.upper(): str(value) for key, value in settings.items()}
        self.process: subprocess.Popen[str] | None = None

    def url(self, database: str = "mast_trace") -> str:
        """The address of a database that it serves."""
        return f"http://test:write@127.0.0.1:{self.port}/{database}"

    def spawn(self, **environment: str) -> subprocess.Popen[str]:
        """Start it without waiting until it serves."""
        arguments = ["database", self.data_dir, str(self.port)]
        if not self._database_only:
            arguments = ["serve", self.data_dir]
        with self.log.open("a") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-X", "faulthandler", HERE / "collector_process.py", *arguments],
                env=self._environment(environment),
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        return self.process

    def start(self, **environment: str) -> dict[str, str]:
        """Start it; its addresses, once it serves."""
        process = self.spawn(**environment)
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, self.log.read_text()[-3000:]
        addresses: dict[str, str] = json.loads(line)
        return addresses

    def wait(self) -> int:
        """Wait until it is gone."""
        assert self.process is not None
        assert self.process.stdout is not None
        self.process.stdout.close()
        return self.process.wait(timeout=300)

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.wait()

    def terminate(self) -> int:
        """Ask it to stop, which stores what waits."""
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        return self.wait()

    def query(self, sql: str) -> list[dict[str, Any]]:
        """Rows of the database; the collector must not run."""
        answer = run_program(
            *(sys.executable, HERE / "collector_process.py", "query", self.data_dir, sql),
            status=0,
            env=self._environment({}),
            timeout=60,
        )
        rows: list[dict[str, Any]] = json.loads(answer.stdout)
        return rows

    def span_ids(self, table: str = "otel_traces") -> list[str]:
        """Ids of the stored spans; the collector must not run."""
        return [row["SpanId"] for row in self.query(f"SELECT SpanId FROM {table} ORDER BY SpanId")]

    def signal(self, number: signal.Signals) -> None:
        assert self.process is not None
        self.process.send_signal(number)

    def close(self) -> None:
        """End it whatever its state."""
        if self.process is not None and self.process.poll() is None:
            self.kill()

    def _environment(self, extra: dict[str, str]) -> dict[str, str]:
        port = {"MAST_TRACE_HTTP_PORT": str(self.port)}
        return {**os.environ, **SETTINGS, **port, **self._settings, **extra}


@contextmanager
def sending(
    folder: Path, ports: Sequence[int], threads: int = 2
) -> Iterator[Callable[[], list[str]]]:
    """Send to each port; the call that is yielded ends it and returns the acknowledged ids, sorted."""
    files = [folder / f"acknowledged-{number}" for number in range(len(ports))]
    program = [sys.executable, HERE / "span_sender.py"]
    senders = [
        subprocess.Popen([*program, str(port), file, str(threads), str(number)])
        for number, (port, file) in enumerate(zip(ports, files, strict=True))
    ]

    def end() -> list[str]:
        for sender in senders:
            sender.send_signal(signal.SIGTERM)
        assert [sender.wait(timeout=120) for sender in senders] == [0] * len(senders)
        ids = sorted(span_id for file in files for span_id in file.read_text().split())
        assert len(ids) == len(set(ids)) > 0
        return ids

    try:
        yield end
    finally:
        for sender in senders:
            sender.kill()
