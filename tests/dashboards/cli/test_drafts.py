"""Files that users name, and what may stand there already."""

from __future__ import annotations

import json
import os
import stat
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from mast_trace_dashboards.cli.until_stopped import not_ready, ready
from mast_trace_dashboards.whole_files import write_whole

if TYPE_CHECKING:
    from pathlib import Path

ADDRESSES = {"web": "http://127.0.0.1:1"}


def test_the_ready_file_comes_whole_and_goes(tmp_path: Path) -> None:
    file = tmp_path / "ready.json"
    ready(ADDRESSES, file)
    assert json.loads(file.read_text()) == ADDRESSES
    assert file.stat().st_mode & 0o077 == 0
    not_ready(file)
    assert not list(tmp_path.iterdir())


def test_a_pipe_for_a_ready_file_is_told_and_stays(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with ThreadPoolExecutor() as reader:
        came = reader.submit(pipe.read_text)
        ready(ADDRESSES, pipe)
        assert json.loads(came.result(60)) == ADDRESSES
    not_ready(pipe)
    assert pipe.is_fifo()


@pytest.mark.parametrize(("private", "mode"), [(False, 0o644), (True, 0o600)])
def test_a_file_is_private_only_where_it_has_to_be(
    tmp_path: Path, private: bool, mode: int
) -> None:
    before = os.umask(0o022)
    try:
        write_whole(tmp_path / "file", "text", private=private)
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == mode
