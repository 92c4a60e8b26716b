"""Oracles and resets: commands of the user that end, fail, hang and print without end."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

import pytest

from mast_trace.replay.plan_variable import PLAN_VARIABLE
from mast_trace_dashboards.programs import Program
from mast_trace_lab.program.process import (
    Oracle,
    ResetFailed,
    oracle_of,
    reset,
    run_command,
)

if TYPE_CHECKING:
    from pathlib import Path


def python(code: str) -> tuple[str, ...]:
    return (sys.executable, "-c", code)


READS = "import sys; answer = sys.stdin.read()\n"


@pytest.mark.parametrize(
    ("code", "answer", "success", "reason"),
    [
        (READS + "sys.exit('750' not in answer)", "It costs 750 EUR.", True, ""),
        (READS + "print('wrong sum'); sys.exit('750' not in answer)", "939", False, "wrong sum"),
        (READS + "sys.exit(2)", "750", None, "the oracle ended with 2"),
        ("raise SystemExit(3)", "x" * 1_000_000, None, "the oracle ended with 3"),
        (READS + "sys.exit(answer != 'größer \\U0001f600')", "größer \U0001f600", True, ""),
        ("import os; os.kill(os.getpid(), 9)", "750", None, "the oracle ended with -9"),
    ],
)
def test_a_status_is_an_opinion(code: str, answer: str, success: bool | None, reason: str) -> None:
    opinion = Oracle(python(code)).ask(answer)
    assert (opinion.success, opinion.reason) == (success, reason)


def test_an_exception_of_the_oracle_is_a_failure_only_by_its_exit_status() -> None:
    """Python ends with 1 after an exception: documented, since no caller can tell it from "wrong"."""
    opinion = Oracle(python("raise ValueError('no file')")).ask("750")
    assert (opinion.success, opinion.reason) == (False, "ValueError: no file")


def test_an_oracle_that_does_not_exist_has_no_opinion() -> None:
    opinion = Oracle(("/no-such-oracle",)).ask("750")
    assert opinion.success is None
    assert "cannot be started" in opinion.reason


def test_no_shell_reads_the_command(tmp_path: Path) -> None:
    mark = tmp_path / "made"
    words = f"{sys.executable} -c pass ; touch {mark}"
    program = Program.model_validate({"command": ["p"], "oracle": words})
    assert program.oracle is not None
    assert Oracle(program.oracle).ask("x; touch y").success is True
    assert not mark.exists()


def test_an_oracle_that_hangs_is_killed_with_its_children(tmp_path: Path) -> None:
    mark = tmp_path / "alive"
    child = f"import time; time.sleep(2); open({str(mark)!r}, 'w')"
    code = f"import subprocess, sys, time; subprocess.Popen([sys.executable, '-c', {child!r}]); time.sleep(600)"
    begun = time.monotonic()
    opinion = Oracle(python(code), timeout=0.5).ask("750")
    assert opinion.success is None
    assert "did not end within 0.5 s" in opinion.reason
    time.sleep(2.2)
    assert not mark.exists()
    assert time.monotonic() - begun < 20


def test_a_child_that_keeps_the_pipes_open_does_not_hold_the_oracle_up() -> None:
    code = "import subprocess, sys; subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])"
    begun = time.monotonic()
    assert Oracle(python(code)).ask("750").success is True
    assert time.monotonic() - begun < 20


def test_endless_output_takes_no_memory() -> None:
    ended = run_command(python("while True: print('x' * 1000)"), timeout=1.0)
    assert ended.exit_status is None
    assert len(ended.printed) <= 2000


def test_the_end_of_what_is_printed_is_kept() -> None:
    ended = run_command(python("print('x' * 99_999); print('the last word')"), timeout=60.0)
    assert (len(ended.printed), ended.last_line) == (2000, "the last word")


def test_an_oracle_is_no_replay(monkeypatch: pytest.MonkeyPatch) -> None:
    """The variable of a plan is not handed on: an oracle may be a traced program itself."""
    monkeypatch.setenv(PLAN_VARIABLE, "/somewhere")
    code = f"import os, sys; sys.exit({PLAN_VARIABLE!r} in os.environ)"
    assert Oracle(python(code)).ask("").success is True


def test_without_a_command_there_is_no_oracle() -> None:
    assert oracle_of(None) is None
    assert oracle_of(["check", "it"]) == Oracle(("check", "it"))


def test_a_reset_that_fails_says_why(tmp_path: Path) -> None:
    mark = tmp_path / "made"
    reset(python(f"open({str(mark)!r}, 'w')"))
    assert mark.exists()
    with pytest.raises(ResetFailed, match="ended with 4: database is locked"):
        reset(python("print('database is locked'); raise SystemExit(4)"))
    with pytest.raises(ResetFailed, match="did not end within"):
        reset(python("import time; time.sleep(60)"), timeout=0.3)
    with pytest.raises(ResetFailed, match="cannot be started"):
        reset(["/no-such-reset"])
