"""The process that is killed: `mast-trace up` or `mast-trace collect`, again and again."""

from __future__ import annotations

import os
import signal
import time
from typing import TYPE_CHECKING

from end_to_end.processes import SETTINGS, free_port

if TYPE_CHECKING:
    from pathlib import Path

    from cases import Command, Protocol
    from nursery import Nursery


class Victim:
    """A command on one data folder and fixed ports.

    Attributes:
        starts: number of starts.
        failed_starts: number of starts after which it ended by itself.
        kills: number of times that SIGKILL ended it.
        seconds: duration of its last start.

    Args:
        folder: of its data and its log.
        command: the command to run.
        database: address of a server; empty for the embedded engine.
        nursery: starts it.
        cold: see `Nursery.start`.
    """

    def __init__(
        self, folder: Path, command: Command, database: str, nursery: Nursery, *, cold: bool
    ) -> None:
        self.starts = self.failed_starts = self.kills = 0
        self.seconds = 1.0
        self._nursery, self._cold = nursery, cold
        self._ready = folder / "ready.json"
        self.log = folder / "log"
        self._ports = {"http": free_port(), "grpc": free_port()}
        self._settings = {
            **SETTINGS,
            "MAST_TRACE_GRPC_PORT": str(self._ports["grpc"]),
            "MAST_TRACE_HTTP_PORT": str(self._ports["http"]),
            "MAST_TRACE_DATA_DIR": str(folder / "data"),
            "MAST_TRACE_DATABASE_URL": database,
        }
        self._arguments = [command.split()[0], "--ready-file", str(self._ready)]
        if command == "up":
            self._arguments += ["--clickhouse-port", "0", "--web-port", "0"]
        self._pid = 0

    def port(self, protocol: Protocol) -> int:
        """Return the address for spans of that protocol."""
        return self._ports["grpc" if protocol == "grpc" else "http"]

    def spawn(self) -> None:
        """Start it without waiting until it serves."""
        self._ready.unlink(missing_ok=True)
        self._pid = self._nursery.start(self._arguments, self.log, self._settings, cold=self._cold)
        self.starts += 1

    def start(self) -> bool:
        """Start it; whether it serves, or has ended by itself."""
        began = time.monotonic()
        self.spawn()
        while not self._ready.exists():
            if self.gone():
                return False
            time.sleep(0.01)
        self.seconds = time.monotonic() - began
        return True

    def gone(self) -> bool:
        """Return whether it has ended by itself; that is a failed start."""
        if self._pid and self._nursery.gone(self._pid):
            self._nursery.wait(self._pid)
            self._pid = 0
            self.failed_starts += 1
        return not self._pid

    def terminate(self) -> None:
        """Ask it to stop, without waiting."""
        if self._pid:
            os.kill(self._pid, signal.SIGTERM)

    def kill(self) -> None:
        """End it without warning, if it still runs."""
        if self._pid:
            os.kill(self._pid, signal.SIGKILL)
            self.kills += self._nursery.wait(self._pid) == -signal.SIGKILL
            self._pid = 0

    def finish(self) -> None:
        """End it in order, which stores what waits.

        Raises:
            RuntimeError: it did not end well.
        """
        self.terminate()
        if (status := self._nursery.wait(self._pid)) != 0:
            raise RuntimeError(f"ended with {status}: {self.log.read_text()[-3000:]}")
        self._pid = 0
