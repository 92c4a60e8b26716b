"""A collector that may open few files serves few connections, and says so; none at all says why."""

from __future__ import annotations

import json
import os
import resource
import socket
import subprocess
import time
from typing import TYPE_CHECKING

import pytest
from end_to_end.span_sender import post, request_of
from end_to_end.up_process import MAST_TRACE

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.end_to_end


def collect(folder: Path, files: int) -> subprocess.Popen[bytes]:
    """Start `mast-trace collect` under a hard limit of open files."""
    command = [*MAST_TRACE, "collect", "--data-dir", str(folder / "data"), "--http-port", "0"]
    command += ["--grpc-port", "0", "--ready-file", str(folder / "ready.json")]
    with (folder / "log").open("ab") as log:
        return subprocess.Popen(
            command,
            env={**os.environ, "MAST_TRACE_SPOOL_MIN_FREE_BYTES": "0"},
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (files, files)),  # noqa: PLW1509
            stdout=log,
            stderr=log,
        )


def test_too_few_to_begin_with_is_one_line_that_says_what_to_do(tmp_path: Path) -> None:
    process = collect(tmp_path, 64)
    assert process.wait(120) == 2
    log_text = (tmp_path / "log").read_text()
    assert "64 files open" in log_text
    assert "ulimit -n" in log_text
    assert "Traceback" not in log_text


def test_idle_connections_beyond_the_limit_keep_nobody_out(tmp_path: Path) -> None:
    process = collect(tmp_path, 256)
    idle: list[socket.socket] = []
    try:
        ready = tmp_path / "ready.json"
        while not ready.exists():
            assert process.poll() is None, (tmp_path / "log").read_text()
            time.sleep(0.05)
        port = int(json.loads(ready.read_text())["otlp_http"].rpartition(":")[2])
        for number in range(300):
            idle.append(socket.create_connection(("127.0.0.1", port)))
            if number % 60 == 59:
                body, _ = request_of(1, number)
                tries = range(20)
                assert any(post(port, body) or time.sleep(0.3) for _ in tries)
    finally:
        process.terminate()
        process.wait(120)
        for connection in idle:
            connection.close()
    log_text = (tmp_path / "log").read_text()
    assert len(log_text.splitlines()) < 60, log_text
    assert "Traceback" not in log_text
