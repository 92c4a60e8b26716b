"""Starts `mast-trace` commands by forking a process that has imported them already.

Imports are three quarters of a start and touch nothing on disk; a kill during them tests nothing.
The embedded engine alone is loaded after the fork, because it has threads. Reads a line of JSON for
each start on standard input and answers with a line: ``{"pid": ...}``, and once that process is
gone and asked for, ``{"status": ...}``.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import json
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

PR_SET_PDEATHSIG = 1
_IMPORTED = (
    "clickhouse_connect.driver.client",
    "grpc.aio",
    "mast_trace_collector.collector",
    "mast_trace_dashboards.cli.app",
    "mast_trace_dashboards.cli.commands.collect",
    "mast_trace_dashboards.cli.commands.up",
    "mast_trace_dashboards.local.all_in_one",
)


class Nursery:
    """The process that forks, for those who want a command started."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def start(
        self, arguments: Sequence[str], log: Path, settings: Mapping[str, str], *, cold: bool
    ) -> int:
        """Start ``mast-trace ARGUMENTS`` and return its process id.

        Args:
            arguments: of the command line.
            log: gets its output.
            settings: environment variables.
            cold: start Python anew, as a shell would.
        """
        order = {"arguments": list(arguments), "settings": dict(settings), "cold": cold}
        return int(self._asked({**order, "log": str(log)})["pid"])

    def query(self, url: str, sql: str, output: Path) -> list[list[Any]]:
        """Return the rows of a store that no process has open."""
        pid = self._asked({"query": sql, "url": url, "log": str(output)})["pid"]
        if self.wait(int(pid)) != 0:
            raise RuntimeError(f"{url} cannot be read: {output.read_text()[-2000:]}")
        rows: list[list[Any]] = json.loads(output.read_text().splitlines()[-1])
        return rows

    def wait(self, pid: int) -> int:
        """Wait until a process is gone; its exit status, negative for a signal."""
        return int(self._asked({"wait": pid})["status"])

    def gone(self, pid: int) -> bool:
        """Return whether a process has ended by itself; it is still to be waited for."""
        return bool(self._asked({"gone": pid})["gone"])

    def close(self) -> None:
        """End it, and with it what it started."""
        self._process.kill()
        self._process.wait()

    def _asked(self, order: dict[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        return answer


def _serve() -> None:
    """Fork as instructed on standard input until it ends."""
    _import_everything()
    for line in sys.stdin:
        order = json.loads(line)
        if "wait" in order:
            _, status = os.waitpid(order["wait"], 0)
            answer: dict[str, Any] = {"status": os.waitstatus_to_exitcode(status)}
        elif "gone" in order:
            found = os.waitid(os.P_PID, order["gone"], os.WEXITED | os.WNOHANG | os.WNOWAIT)
            answer = {"gone": found is not None}
        else:
            pid = os.fork()
            if pid == 0:
                _become(order)
            answer = {"pid": pid}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


def _import_everything() -> None:
    for module in _IMPORTED:
        importlib.import_module(module)
    if "chdb" in sys.modules:
        raise RuntimeError("the engine has threads, which a fork would lose")


def _become(order: dict[str, Any]) -> NoReturn:
    """Become the requested process; a child never returns to the loop of its parent."""
    status = 70
    with contextlib.suppress(BaseException):
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        log = os.open(order["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        for descriptor in (1, 2):
            os.dup2(log, descriptor)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        status = _query(order) if "query" in order else _command(order)
        sys.stdout.flush()
    os._exit(status)


def _command(order: dict[str, Any]) -> int:
    from mast_trace_dashboards.cli.app import run

    os.environ.update(order["settings"])
    if order["cold"]:
        os.execv(
            sys.executable, [sys.executable, "-m", "mast_trace_dashboards", *order["arguments"]]
        )
    return run(order["arguments"])


def _query(order: dict[str, Any]) -> int:
    from mast_trace_collector.storage import Store

    with Store.open(order["url"]) as store:
        rows = [list(row.values()) for row in store.query(order["query"])]
    sys.stdout.write(json.dumps(rows) + "\n")
    return 0


if __name__ == "__main__":
    _serve()
