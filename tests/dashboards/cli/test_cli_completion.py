"""The shell completes commands, options, their values, and runs."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from program_runs import run_program

if TYPE_CHECKING:
    from conftest import Recorded

PROGRAM = Path(sys.executable).with_name("mast-trace")


def completed(line: str, **more: str) -> list[str]:
    """Return bash's completions for the last word of a command line."""
    words = line.split(" ")
    asked = {
        "_MAST_TRACE_COMPLETE": "complete_bash",
        "MAST_TRACE_JUDGE_MODLE": "a misspelt variable, of which nothing is said here",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(words) - 1),
    }
    command = (sys.executable, "-m", "mast_trace_dashboards")
    ended = run_program(*command, status=0, env={**os.environ, **more, **asked}, timeout=60)
    assert ended.stderr == ""
    return ended.stdout.split()


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("mast-trace ru", ["runs"]),
        ("mast-trace alerts ", ["check", "run"]),
        ("mast-trace runs --outcome fa", ["failure"]),
        ("mast-trace runs --frame", ["--framework"]),
    ],
)
def test_words_are_completed(line: str, offered: list[str]) -> None:
    assert completed(line) == offered


def test_runs_are_completed_by_a_beginning_of_their_id(recorded: Recorded, no_store: Path) -> None:
    store = {"MAST_TRACE_DATABASE_URL": recorded.url}
    assert completed("mast-trace show aa0", **store) == ["aa020000", "aa010000"]
    assert completed("mast-trace outcome l", **store) == ["last"]
    assert completed("mast-trace show ", MAST_TRACE_DATA_DIR=str(no_store)) == ["last"]


@pytest.mark.parametrize(
    ("shell", "says"),
    [
        ("bash", "complete -o default"),
        ("zsh", "#compdef mast-trace"),
        ("fish", "complete --command"),
    ],
)
def test_each_shell_has_a_script(shell: str, says: str) -> None:
    named = {"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    script = shown(PROGRAM, "--show-completion", shell, **named)
    assert "_MAST_TRACE_COMPLETE" in script
    assert says in script


def test_the_shell_around_the_command_is_found() -> None:
    script = shown("bash", "-c", '"$@"; exit $?', "bash", PROGRAM, "--show-completion")
    assert "complete -o default" in script


def shown(*command: str | Path, **environment: str) -> str:
    environment = {**os.environ, **environment}
    return run_program(*command, status=0, timeout=60, env=environment).stdout
