"""A replay whose starter is killed ends, and leaves neither a process nor a folder."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING
from unittest.mock import Mock

import pytest

from mast_trace.replay import program

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.end_to_end

STARTER = """
import sys
from mast_trace.replay.intervention import Intervention
from mast_trace.replay.tape import Tape
from mast_trace_lab.program.setup import Setup
from mast_trace_lab.replay.runner import play
program = Setup((sys.executable, "-c", sys.argv[1]), timeout=600)
play(Tape("run"), program, Intervention("start"))
"""
PROGRAM = """
import os, pathlib, subprocess, sys, time
import mast_trace
mast_trace.instrument()
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
ready = pathlib.Path({ready!r})
ready.with_suffix(".part").write_text(f"{{os.getpid()}} {{child.pid}} {{os.environ['MAST_TRACE_REPLAY']}}")
ready.with_suffix(".part").rename(ready)
time.sleep(600)
"""


def until(condition: Callable[[], bool], seconds: float) -> None:
    """Wait until a condition holds."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.1)


def is_there(process: int) -> bool:
    """Return whether a process runs; one that has ended and is not yet reaped does not."""
    try:
        state = Path(f"/proc/{process}/stat").read_text("utf-8").rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def test_nothing_outlives_a_killed_starter(tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    program = PROGRAM.format(ready=str(ready))
    starter = subprocess.Popen([sys.executable, "-c", STARTER, program], start_new_session=True)
    try:
        until(ready.exists, 60)
        own, child, folder = ready.read_text("utf-8").split(" ", 2)
        plan = Path(folder) / "plan.json"
        assert stat.S_IMODE(plan.stat().st_mode) == 0o600
        assert stat.S_IMODE(Path(folder).stat().st_mode) == 0o700
    finally:
        os.kill(starter.pid, signal.SIGKILL)
        starter.wait()
    until(lambda: not is_there(int(own)) and not is_there(int(child)), 30)
    until(lambda: not Path(folder).exists(), 10)


@pytest.mark.parametrize(
    ("error", "there"), [(None, True), (PermissionError, True), (ProcessLookupError, False)]
)
def test_a_starter_of_another_user_is_there(
    monkeypatch: pytest.MonkeyPatch, error: type[OSError] | None, there: bool
) -> None:
    monkeypatch.setattr(os, "kill", Mock(side_effect=error))
    assert program._is_there(1) is there
