"""`mast-trace replay` on stored runs."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from confirmations import keep
from replays import NOWHERE, record
from scripted_llm import ScriptedLLM, last_text

from mast_trace.testing import replayed
from mast_trace_dashboards.web.comparisons import compared
from mast_trace_dashboards.web.loaded_run import run_of

if TYPE_CHECKING:
    from conftest import CLI

TEAM = Path(__file__).parents[2] / "judge" / "replay" / "team.py"


def test_a_run_without_model_calls_is_refused(cli: CLI, tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    program = ("--", "/bin/touch", str(mark))
    err = cli.err("replay", "--yes", cli.recorded.ids["unjudged"], *program, status=1)
    assert "cannot be replayed: it has no model calls" in err
    assert not mark.exists()


def test_a_file_of_several_replays_is_refused(cli: CLI, tmp_path: Path) -> None:
    file = tmp_path / "out.json"
    options = ("--change", "keep:1", "--repeat", "2", "--out", str(file))
    err = cli.err("replay", *options, "aa01", "--", "/bin/true", status=2)
    assert "--out holds one replay, and --repeat asks for 2" in err
    assert not file.exists()


def test_a_run_that_is_not_there(cli: CLI) -> None:
    err = cli.err("replay", "--yes", "dead", "--", "/bin/true", status=1)
    assert "no run's id begins with 'dead'" in err


def test_one_run_is_exported(cli: CLI, tmp_path: Path) -> None:
    file = tmp_path / "run.jsonl"
    wanted = cli.recorded.ids["invoices"]
    out = cli.out("export", "--run", wanted[:6], "--out", str(file))
    assert "1 run written" in out
    (line,) = file.read_text("utf-8").splitlines()
    assert json.loads(line)["trace_id"] == wanted


@pytest.mark.end_to_end
def test_a_stored_run_is_identical_in_command_and_test(
    empty: CLI, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def answer(request: dict) -> str:
        return "kettle" if last_text(request) == "Which item?" else "It costs 59.00 EUR."

    monkeypatch.setenv("OPENAI_API_KEY", "scripted")
    monkeypatch.setenv("EXECUTED", str(tmp_path / "executed"))
    with ScriptedLLM(answer) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        made = record(TEAM, folder=tmp_path, keep="OPENAI_")
    (tmp_path / "executed").unlink()
    monkeypatch.setenv("OPENAI_BASE_URL", NOWHERE)
    keep(made, empty.recorded.url, tmp_path)
    empty.capture.readouterr()

    program = ("--", sys.executable, str(TEAM))
    err = empty.err("replay", "last", *program, status=2)
    assert "databases and whatever else its own code touches are real" in err
    assert "Add --yes" in err
    out = empty.out("replay", "--yes", "last", *program)
    assert "identical: 2 of 2 model calls and 1 of 1 tool calls answered" in out
    other = tmp_path / "other.json"
    options = ("--yes", "--json", "--out", str(other))
    out = empty.out("replay", *options, "last", *program, "other-question", status=1)
    assert json.loads(out)["status"] == "diverged"
    found = compared(made.steps, run_of(other.read_bytes()).steps)
    assert found.parting is not None
    assert found.parting.right is not None
    assert not (tmp_path / "executed").exists()

    with (
        pytest.raises(AssertionError, match="2 model calls"),
        replayed(tmp_path / "run.jsonl") as test,
    ):
        test.assert_identical()
