"""A collector that may open few files serves few connections, and says so; none at all says why."""

from __future__ import annotations

import socket
import time
from typing import TYPE_CHECKING

import pytest
from end_to_end.span_sender import post, request_of
from end_to_end.up_process import CollectProcess

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.end_to_end


def test_too_few_to_begin_with_is_one_line_that_says_what_to_do(tmp_path: Path) -> None:
    collect = CollectProcess(tmp_path, files=64)
    assert collect.spawn().wait(120) == 2
    log_text = collect.log.read_text()
    assert "64 files open" in log_text
    assert "ulimit -n" in log_text
    assert "Traceback" not in log_text


def test_idle_connections_beyond_the_limit_keep_nobody_out(tmp_path: Path) -> None:
    collect = CollectProcess(tmp_path, files=256)
    idle: list[socket.socket] = []
    try:
        port = collect.start()
        for number in range(300):
            idle.append(socket.create_connection(("127.0.0.1", port)))
            if number % 60 == 59:
                body, _ = request_of(1, number)
                tries = range(20)
                assert any(post(port, body) or time.sleep(0.3) for _ in tries)
    finally:
        collect.stop()
        for connection in idle:
            connection.close()
    log_text = collect.log.read_text()
    assert len(log_text.splitlines()) < 60, log_text
    assert "Traceback" not in log_text
