"""Texts that a person typed are recorded and typed again in a replay."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from replays import NOWHERE, parents, record_all
from scripted_llm import ScriptedLLM, last_text

from mast_trace.trajectory import to_dict
from mast_trace_dashboards.cli.app import run
from mast_trace_lab.program.setup import Setup
from mast_trace_lab.replay import replay

if TYPE_CHECKING:
    from mast_trace.trajectory import Trajectory
    from mast_trace_lab.replay import Replayed

pytestmark = pytest.mark.end_to_end

ASKING = Path(__file__).parent / "asking.py"


@pytest.fixture
def record_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Records the program in one of its ways while a person types lines."""

    def run(way: str, typed: str) -> list[Trajectory]:
        with ScriptedLLM(lambda request: f"On {last_text(request)!r}: 59 EUR.") as server:
            monkeypatch.setenv("OPENAI_BASE_URL", server.url)
            monkeypatch.setenv("OPENAI_API_KEY", "scripted")
            return record_all(ASKING, way, folder=tmp_path, keep="OPENAI_", typed=typed)

    return run


@pytest.fixture
def again(monkeypatch: pytest.MonkeyPatch):
    """Replays the program in one of its ways, without a reachable model and without standard input."""

    def run(runs: list[Trajectory], way: str) -> Replayed:
        monkeypatch.setenv("OPENAI_BASE_URL", NOWHERE)
        *earlier, last = runs
        command = (sys.executable, str(ASKING), way)
        setup = Setup(command, earlier=earlier, plain=["block"], parent=parents())
        return replay(last, setup)

    return run


@pytest.mark.parametrize("way", ["before", "inside", "thread"])
def test_a_typed_text_is_typed_again(record_way, again, way: str) -> None:
    """The replay is identical wherever the person was asked, and so is a replay of the replay."""
    recorded = record_way(way, "kettle\n")
    assert [run.human_inputs for run in recorded] == [("kettle",)]
    done = again(recorded, way)
    assert (done.status, done.text, done.exit_status) == ("identical", "", 0)
    assert done.run is not None
    assert again([done.run], way).status == "identical"


def test_inputs_of_answered_tools_are_left_out(record_way, again) -> None:
    """A tool that is answered asks nobody; the texts of later questions stay theirs."""
    recorded = record_way("tool", "yes\nreally\nred\n")
    assert recorded[0].human_inputs == ("yes", "really", "red")
    assert [bool(span) for span in recorded[0].human_input_spans] == [True, True, False]
    done = again(recorded, "tool")
    assert (done.status, done.text, done.exit_status) == ("identical", "", 0)


def test_a_question_more_is_answered_by_the_end_of_input(record_way, again) -> None:
    """A program that asks once more than it did diverges by the other text in its request."""
    done = again(record_way("inside", "kettle\n"), "once-more")
    assert (done.status, done.exit_status) == ("diverged", 1)
    assert "asks a person for input (Which item?)" in done.text


def test_a_record_without_inputs_is_refused_at_the_question(record_way, again) -> None:
    """Runs of the previous version hold no inputs: the question is named."""
    recorded = [replace(run, human_inputs=()) for run in record_way("inside", "kettle\n")]
    done = again(recorded, "inside")
    assert done.status == "diverged"
    assert "asks a person for input (Which item?), and the record has no text" in done.text


class TestResumed:
    """A graph that is interrupted makes two runs, which one replay answers."""

    @pytest.fixture
    def recorded(self, record_way) -> list[Trajectory]:
        """The interrupted run and the one that continues it."""
        pytest.importorskip("langgraph")
        runs = record_way("resumed", "shorter\n")
        assert [run.resumes for run in runs] == ["", runs[0].trace_id]
        return list(runs)

    def test_both_runs_are_identical(self, recorded: list[Trajectory], again) -> None:
        done = again(recorded, "resumed")
        assert (done.status, done.text, done.exit_status) == ("identical", "", 0)
        assert done.report is not None
        assert done.report.served_exchanges == 2

    def test_the_interrupted_run_alone(self, recorded: list[Trajectory], again) -> None:
        """It ends where the person was asked; a program that goes on is told which run to replay."""
        done = again(recorded[:1], "resumed")
        assert (done.status, done.exit_status) == ("identical", 1)
        done = again(recorded[:1], "resumed-without-asking")
        assert done.status == "diverged"
        assert "replay the run that continues it" in done.text


def test_a_confirmation_keeps_the_interrupted_run(
    record_way, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without the interrupted run it is refused with the reason; with it, the second run alone is live."""
    first, last = record_way("twice", "kettle\n")
    last = replace(last, resumes=first.trace_id)
    url = f"chdb://{tmp_path / 'store'}"
    assert run(["migrate", "--url", url]) == 0
    options = ("--yes", "--json", "--url", url)
    judging = ("--set", "oracle=false", "--set", "budget.runs=2")
    program = (sys.executable, str(ASKING), "twice")
    command = ["confirm", last.trace_id, *options, *judging, "--", *program]
    with ScriptedLLM(lambda _request: "Yes.") as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("MAST_TRACE_DATA_DIR", str(tmp_path / "data"))
        _store(last, url, tmp_path)
        assert run(command) == 1
        assert f"continues the interrupted run {first.trace_id}" in capsys.readouterr().err
        assert run(["replay", last.trace_id, "--yes", "--url", url, "--", *program]) == 1
        assert f"continues the interrupted run {first.trace_id}" in capsys.readouterr().err
        assert server.requests == []
        _store(first, url, tmp_path)
        capsys.readouterr()
        run(command)
        captured = capsys.readouterr()
        told = json.loads(captured.out)["confirmation"]
        assert (told["replays"], told["live_calls"]) == (7, 1), captured.err
        (request,) = server.requests
        assert last_text(request) == f"Is this right? {first.final_answer}"


def _store(recorded: Trajectory, url: str, folder: Path) -> None:
    file = folder / "runs.jsonl"
    exported = {"trajectory": to_dict(recorded), "verdict": None, "labels": []}
    file.write_text(json.dumps({"trace_id": recorded.trace_id, **exported}) + "\n", "utf-8")
    assert run(["import", str(file), "--url", url]) == 0
