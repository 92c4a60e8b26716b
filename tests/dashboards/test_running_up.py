"""Other processes find a running `mast-trace up`, and only a running one."""

from __future__ import annotations

import socket
import stat
from typing import TYPE_CHECKING

import pytest

from mast_trace.exceptions import ConfigurationError
from mast_trace_dashboards.local import announcement

if TYPE_CHECKING:
    from pathlib import Path


def running(folder: Path, port: int) -> announcement.RunningInstance:
    return announcement.RunningInstance(
        pid=1,
        data_dir=str(folder),
        clickhouse=f"http://default:secret@127.0.0.1:{port}/mast_trace",
        otlp_http="http://127.0.0.1:4318",
    )


def test_nothing_runs_where_nothing_was_announced(tmp_path: Path) -> None:
    assert announcement.find(tmp_path) is None


def test_what_is_announced_is_found_while_it_answers(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        announced = running(tmp_path, server.getsockname()[1])
        announcement.announce(announced)
        assert announcement.find(tmp_path) == announced
        announcement.withdraw(tmp_path)
        assert announcement.find(tmp_path) is None
    announcement.withdraw(tmp_path)


def test_a_killed_process_is_not_found(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    announcement.announce(running(tmp_path, port))
    assert announcement.find(tmp_path) is None


def test_only_the_user_can_read_the_password(tmp_path: Path) -> None:
    for _ in range(2):
        path = announcement.announce(running(tmp_path, 1))
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize("content", ["", "[]", '{"pid": 1}', '{"pid": 1, "surprise": 2}'])
def test_a_broken_file_is_named(tmp_path: Path, content: str) -> None:
    (tmp_path / "up.json").write_text(content, encoding="utf-8")
    with pytest.raises(ConfigurationError, match=r"up\.json"):
        announcement.find(tmp_path)
