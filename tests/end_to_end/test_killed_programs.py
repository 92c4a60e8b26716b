"""A run whose program is killed keeps its name, task and service, and is shown without an end."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from up_process import UpProcess, wait_for

pytestmark = [pytest.mark.end_to_end, pytest.mark.timeout(400)]

PROGRAM = Path(__file__).parent / "stopped_program.py"
ENDS = {"kill": -signal.SIGKILL, "terminate": -signal.SIGTERM, "exit": 3}


def start(up: UpProcess, how: str) -> subprocess.Popen[str]:
    """Start a program and wait until its run has begun."""
    program = subprocess.Popen(
        [sys.executable, str(PROGRAM), how],
        env=up.environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert program.stdout is not None
    assert program.stdout.readline() == "begun\n"
    return program


def by_name(up: UpProcess) -> dict[str, dict[str, Any]]:
    return {row["Name"]: row for row in up.runs()}


def have_no_end(up: UpProcess) -> dict[str, dict[str, Any]] | None:
    """Return the runs once all of them are shown without an end."""
    rows = by_name(up)
    return rows if {row["State"] for row in rows.values()} == {"no end seen"} else None


def test_killed_programs_keep_what_their_runs_were(up: UpProcess) -> None:
    """Before the idle time nobody says that they ended; then that no end was seen; then what comes."""
    up.settings["MAST_TRACE_RUN_IDLE_SECONDS"] = "3600"
    up.start()
    programs = {how: start(up, how) for how in (*ENDS, "person")}
    try:
        programs["kill"].kill()
        programs["terminate"].terminate()
        assert {how: programs[how].wait(60) for how in ENDS} == ENDS
        rows = wait_for(lambda: len(found := by_name(up)) == 4 and found)
        assert {row["State"] for row in rows.values()} == {"running"}
        assert {row["ServiceName"] for row in rows.values()} == {"desk"}

        # The same, with an idle time that has passed.
        assert up.end(signal.SIGTERM) == 0
        up.settings["MAST_TRACE_RUN_IDLE_SECONDS"] = "1"
        up.start()
        rows = wait_for(lambda: have_no_end(up))
        for how in ENDS:
            shown = json.loads(up.printed("show", rows[how]["TraceId"], "--json"))
            assert shown["run"]["Name"] == how
            assert shown["task"] == f"Refund order 7, then {how}."
            assert len(shown["steps"]) == 2
            printed = up.printed("show", rows[how]["TraceId"])
            assert "no end seen" in printed
            assert f"Task: Refund order 7, then {how}." in printed
        # It gave up, for all that is known of a run that ended there; this one did not end.
        wait_for(lambda: all(row["Method"] for row in by_name(up).values()))
        assert [row["Modes"] for row in by_name(up).values()] == [[]] * 4

        # The person answers, and the run goes on to its end.
        programs["person"].communicate("Thanks!\n", timeout=60)
        ended = wait_for(lambda: (row := by_name(up)["person"])["State"] == "judged" and row)
        assert (ended["TraceId"], ended["Spans"]) == (rows["person"]["TraceId"], 5)
    finally:
        for program in programs.values():
            program.kill()
            program.communicate()
