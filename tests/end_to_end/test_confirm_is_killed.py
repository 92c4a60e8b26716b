"""`mast-trace confirm` is killed in its middle, and its program does what programs of strangers do."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from confirmations import REPORT, Failed, environment, failed_shop, spent
from policies import shop
from scripted_llm import Reply, last_text

from mast_trace_dashboards.cli.app import run

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = [pytest.mark.end_to_end, pytest.mark.slow, pytest.mark.timeout(900)]

STRANGER = Path(__file__).parents[1] / "judge" / "replay" / "stranger.py"
_RECORDING = 4
"""Model calls of the recording."""


def start(failed: Failed, *options: str) -> subprocess.Popen[str]:
    """Start the command in a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "mast_trace_dashboards", *failed.arguments("--json", *options)],
        env=environment(failed),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_for(condition: Callable[[], bool], seconds: float = 120.0) -> None:
    """Wait until a condition holds."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


def running(mark: str) -> list[str]:
    """Return the command lines of processes that hold a text."""
    lines = []
    for process in Path("/proc").iterdir():
        if process.name.isdigit() and int(process.name) != os.getpid():
            try:
                line = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            except OSError:
                continue
            if mark in line:
                lines.append(line)
    return lines


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_killed_confirmation_goes_on(tmp_path: Path, number: signal.Signals) -> None:
    """Nothing is doubled, no program is left behind, and the budget holds over both processes."""
    with failed_shop(tmp_path) as failed:
        process = start(failed, "--max-calls", "90")
        wait_for(lambda: len(failed.server.requests) >= _RECORDING + 15)
        process.send_signal(number)
        _, err = process.communicate(timeout=60)
        if number == signal.SIGTERM:
            assert process.returncode == 130
            assert "the same command goes on after them" in err
        # A program whose starter was killed ends itself within a second or two.
        wait_for(lambda: not running(str(failed.program)), 15)
        asked = len(failed.server.requests)
        time.sleep(1)
        assert len(failed.server.requests) == asked
        with failed.store() as store:
            replays, calls = spent(store)
        assert replays > 5
        assert calls >= asked - _RECORDING

        again = start(failed, "--max-calls", "90")
        out, err = again.communicate(timeout=600)
        assert again.returncode == 0, err
        told = json.loads(out)["confirmation"]
        assert (told["status"], told["origin"]) == ("confirmed", REPORT)
        assert told["replays"] > replays
        made = len(failed.server.requests) - _RECORDING
        assert made <= told["live_calls"] <= 90
        with failed.store() as store:
            rows = store.query(
                "SELECT count() AS Rows, uniqExact(Sequence) AS Numbers, countIf(Status = 'reserved') "
                "AS Open FROM mast_replays FINAL"
            )
        assert rows == [{"Rows": told["replays"], "Numbers": told["replays"], "Open": 0}]


def unreadable_at_first(request: dict) -> Reply | str:
    """Answer as the shop, but make the planner ask twice."""
    said = last_text(request)
    if said.startswith("We need") and not said.endswith("Try again."):
        return "???"
    return shop(request)


def test_the_program_of_a_stranger(tmp_path: Path) -> None:
    """Its error is confirmed in spite of UUIDs, times, threads, retries and swallowed exceptions."""
    with failed_shop(tmp_path, program=STRANGER, answers=unreadable_at_first) as failed:
        process = start(failed, "--set", "jobs=2")
        out, err = process.communicate(timeout=800)
        assert process.returncode == 0, err
        told = json.loads(out)["confirmation"]
        assert (told["status"], told["origin_agent"]) == ("confirmed", "counter")


@pytest.mark.parametrize(
    ("way", "said", "seconds"),
    [
        ("connects", "The program connects to 127.0.0.1:9", 120),
        ("hangs", "did not end within 3 s", 3),
    ],
)
def test_a_program_that_cannot_be_replayed_is_refused(
    tmp_path: Path, way: str, said: str, seconds: int, capsys: pytest.CaptureFixture[str]
) -> None:
    with failed_shop(tmp_path, program=STRANGER) as failed:
        asked = len(failed.server.requests)
        capsys.readouterr()
        assert run(failed.arguments("--set", f"timeout={seconds}", way=way)) == 1
        err = capsys.readouterr().err
        assert "is not identical" in err
        assert said in err
        assert len(failed.server.requests) == asked
        with failed.store() as store:
            assert spent(store)[0] == 0


def test_a_program_never_ends_when_live(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Replays that are killed at their time limit are no failures: nothing is concluded from them."""
    with failed_shop(tmp_path) as failed:
        failed.server.script = lambda request: Reply(shop(request), delay=600)
        capsys.readouterr()
        status = run(failed.arguments("--json", "--set", "timeout=8", "--set", "budget.runs=4"))
        told = json.loads(capsys.readouterr().out)
        assert status == 1
        assert told["confirmation"]["status"] == "inconclusive"
        assert told["confirmation"]["origin"] is None
        assert "4 of 4 replays" in told["stopped"]
        assert not running(str(failed.program))


def test_no_child_outlives_its_replay(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with failed_shop(tmp_path, program=STRANGER) as failed:
        capsys.readouterr()
        run(failed.arguments("--set", "budget.runs=3", way="forks"))
        assert not running("import time; time.sleep(600)")
