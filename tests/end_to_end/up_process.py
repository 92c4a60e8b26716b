"""`mast-trace up` as a process of its own, and other commands beside it."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from contextlib import redirect_stdout
from io import StringIO
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from end_to_end.processes import free_port
from program_runs import run_program

from mast_trace_collector.storage import Store
from mast_trace_dashboards.cli.app import run

if TYPE_CHECKING:
    import signal
    from collections.abc import Callable
    from pathlib import Path

MAST_TRACE = [sys.executable, "-m", "mast_trace_dashboards"]


class UpProcess:
    """`mast-trace up` on one folder and one port, started and ended as often as a test likes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = free_port()
        self.ready: dict[str, Any] = {}
        self.settings: dict[str, str] = {}
        self._process: subprocess.Popen[bytes] | None = None
        self._log = folder.parent / f"{folder.name}.log"

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start it and wait until it is ready."""
        ready = self.folder.parent / f"{self.folder.name}.ready.json"
        ready.unlink(missing_ok=True)
        command = [*MAST_TRACE, "up", "--http-port", str(self.port), "--grpc-port", "0"]
        command += ["--clickhouse-port", "0", "--web-port", "0", "--ready-file", str(ready)]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                command, env=self.environment(), stderr=log, stdout=log
            )
        while not ready.exists():
            assert self._process.poll() is None, self._log.read_text()
            time.sleep(0.05)
        self.ready = json.loads(ready.read_text())

    def end(self, how: signal.Signals) -> int:
        """End it by a signal and return its exit status."""
        assert self._process is not None
        self._process.send_signal(how)
        return self._process.wait(60)

    def kill_if_running(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait()

    def environment(self) -> dict[str, str]:
        """The environment of commands that belong to this folder."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("MAST_TRACE_", "OTEL_"))}
        return {
            **kept,
            "MAST_TRACE_DATA_DIR": str(self.folder),
            "MAST_TRACE_RUN_QUIET_SECONDS": "0.5",
            "OTEL_EXPORTER_OTLP_ENDPOINT": self.endpoint,
            **self.settings,
        }

    def mast_trace(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run another `mast-trace` command on the same folder."""
        return run_program(*MAST_TRACE, *arguments, env=self.environment(), timeout=120)

    def printed(self, *arguments: str) -> str:
        """Return the output of such a command, which is asked again and again: in this process."""
        own = patch.dict(os.environ, self.environment(), clear=True)
        with own, redirect_stdout(StringIO()) as out:
            assert run([*arguments]) == 0
        return out.getvalue()

    def runs(self) -> list[dict[str, Any]]:
        """Return the output of `mast-trace runs --json`."""
        rows: list[dict[str, Any]] = json.loads(self.printed("runs", "--json"))
        return rows

    def store(self) -> Store:
        """The database, through the socket of this user's commands."""
        return Store.open(self.ready["owner"])


class CollectProcess:
    """`mast-trace collect` beside a database, under a limit of open files if one is given."""

    def __init__(self, folder: Path, url: str = "", *, files: int = 0) -> None:
        self.log = folder / "collect.log"
        self.spool = folder / "collect" / "spool"
        self.ready: dict[str, Any] = {}
        self.environment = {**os.environ, "MAST_TRACE_SPOOL_MIN_FREE_BYTES": "0"}
        self._ready = folder / "ready.json"
        self._files = files
        self._command = [*MAST_TRACE, "collect", "--data-dir", str(self.spool.parent)]
        self._command += ["--http-port", "0", "--grpc-port", "0", "--ready-file", str(self._ready)]
        self._command += ["--url", url] if url else []

    def spawn(self) -> subprocess.Popen[bytes]:
        """Start it without waiting until it serves."""

        def limit() -> None:
            if self._files:
                resource.setrlimit(resource.RLIMIT_NOFILE, (self._files, self._files))

        self._ready.unlink(missing_ok=True)
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                self._command,
                env=self.environment,
                preexec_fn=limit,  # noqa: PLW1509
                stdout=log,
                stderr=log,
            )
        return self.process

    def start(self) -> int:
        """Start it and wait until it serves; its port of HTTP."""
        process = self.spawn()
        while not self._ready.exists():
            assert process.poll() is None, self.log.read_text()
            time.sleep(0.05)
        self.ready = json.loads(self._ready.read_text())
        return int(self.ready["otlp_http"].rpartition(":")[2])

    def stop(self, seconds: float = 120.0) -> int:
        """Ask it to stop and return its exit status."""
        self.process.terminate()
        return self.process.wait(seconds)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


def wait_for(condition: Callable[[], Any]) -> Any:
    """Return the first true value of a condition; pytest's timeout ends the waiting."""
    while not (value := condition()):
        time.sleep(0.1)
    return value
