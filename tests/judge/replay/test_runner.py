"""Replays of a program that is identical, that differs, that is not recorded and that never ends."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from replays import NOWHERE, check_replay, parents, record, replay_here
from scripted_llm import Reply, ScriptedLLM, last_text

from mast_trace.content import truncate
from mast_trace.messages import ToolCall
from mast_trace.replay.recording import NotReplayable, tape_of
from mast_trace_lab.program.setup import Setup
from mast_trace_lab.replay import replay

if TYPE_CHECKING:
    from mast_trace.trajectory import Trajectory
    from mast_trace_lab.replay import Replayed

pytestmark = pytest.mark.end_to_end

TEAM = Path(__file__).parent / "team.py"
POOLED = Path(__file__).parent / "pooled.py"


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Trajectory:
    """A recorded run of the team."""
    folder = tmp_path_factory.mktemp("recorded")

    def answer(request: dict) -> str:
        return "kettle" if last_text(request) == "Which item?" else "It costs 59.00 EUR."

    with ScriptedLLM(answer) as server, pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_BASE_URL", server.url)
        patch.setenv("OPENAI_API_KEY", "scripted")
        patch.setenv("EXECUTED", str(folder / "executed"))
        return record(TEAM, folder=folder, keep="OPENAI_")


@pytest.fixture
def again(recorded: Trajectory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Replays the team in one of its ways, without a reachable model."""
    monkeypatch.setenv("OPENAI_BASE_URL", NOWHERE)
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    monkeypatch.setenv("EXECUTED", str(tmp_path / "executed"))

    def run(*way: str, **options) -> Replayed:
        setup = Setup((sys.executable, str(TEAM), *way), parent=parents(), **options)
        return replay(recorded, setup)

    return run


@pytest.mark.parametrize("way", ["", "streamed"])
def test_one_program_is_identical(again, recorded: Trajectory, tmp_path: Path, way: str) -> None:
    done = again(way)
    assert (done.status, done.text, done.exit_status) == ("identical", "", 0)
    assert done.run is not None
    assert done.run.final_answer == "It costs 59.00 EUR."
    here = replay_here(recorded, TEAM, way, folder=tmp_path)
    for run in (done.run, here):
        replay_here(run, TEAM, way, folder=tmp_path)
    assert not (tmp_path / "executed").exists()


def test_a_pool_that_carries_the_run_is_identical(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A later question is answered sooner: each call gets its own answer again, whatever the order."""

    def answer(request: dict) -> Reply:
        text = last_text(request)
        number = re.search(r"Price of 1(\d) ", text)
        if number is None:
            return Reply("Together " + str(sum(map(int, re.findall(r"\d+", text)))))
        return Reply(f"{number[1]} EUR", delay=0.05 * (6 - int(number[1])))

    with ScriptedLLM(answer) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", "scripted")
        done = check_replay(POOLED, folder=tmp_path, keep="OPENAI_")
    assert done.run is not None
    assert done.run.final_answer == "Together 15"
    assert done.report is not None
    assert (done.report.served_exchanges, done.report.served_executions) == (7, 6)


def test_another_question_diverges_even_if_the_program_swallows_the_error(again) -> None:
    done = again("other-question")
    assert (done.status, done.exit_status) == ("diverged", 0)
    assert "seller asked the model otherwise" in done.text
    assert "+user: Say that kettle costs 59.00 EUR. Shout." in done.text


def test_another_call_of_a_tool_is_not_executed(again, tmp_path: Path) -> None:
    done = again("other-tool-arguments")
    assert done.status == "diverged"
    assert 'look_up({"item": "pot"}); it was not executed' in done.text
    assert not (tmp_path / "executed").exists()
    assert done.exit_status == 1


def test_a_live_tool_is_executed(again, tmp_path: Path) -> None:
    done = again("other-tool-arguments", live_tools=["look_up"])
    assert (tmp_path / "executed").read_text() == "pot\n"
    assert done.report is not None
    assert done.report.live_executions == 1


def test_other_words_of_its_own_are_a_difference(again) -> None:
    done = again("other-words")
    assert done.status == "different"
    assert "'So: It costs 59.00 EUR.'" in done.text


def test_a_program_that_leaves_early_is_unfinished(again) -> None:
    done = again("leaves-early")
    assert done.status == "unfinished"
    assert "without 1 model calls and 0 tool calls" in done.text


def test_a_program_that_never_ends_is_killed(again) -> None:
    done = again("hangs", timeout=4)
    assert done.status == "timeout"
    assert done.report is not None
    assert done.report.served_exchanges == 1


def test_connections_of_its_own_are_refused(again) -> None:
    done = again("connects")
    assert done.status == "diverged"
    assert "--set allow_hosts=127.0.0.1" in done.text
    allowed = again("connects", hosts=["127.0.0.1"])
    assert allowed.status == "unfinished"  # nothing listens there


def test_a_program_that_is_not_recorded_is_told_of(again) -> None:
    done = again("", "unrecorded")
    assert done.status == "not recorded"
    assert done.report is None


def test_a_command_that_does_not_exist(recorded: Trajectory) -> None:
    with pytest.raises(OSError, match="no-such-program"):
        replay(recorded, Setup(("/no-such-program",)))


class TestNotReplayable:
    """Runs that lack data are refused before the program is started."""

    def refused(self, run: Trajectory, tmp_path: Path) -> str:
        """Return the reason of the refusal, and assert that the program was not started."""
        mark = tmp_path / "ran"
        with pytest.raises(NotReplayable) as refusal:
            replay(run, Setup((sys.executable, "-c", f"open({str(mark)!r}, 'w')")))
        assert not mark.exists()
        return str(refusal.value)

    @pytest.mark.parametrize(
        ("of", "changed", "said"),
        [
            ("run", {"invocations": ()}, "no model calls"),
            ("run", {"texts": {}}, "capture_content"),
            ("run", {"unread_from": 1, "unread_to": 2}, "too long"),
            ("run", {"redacted": ("mast.human.inputs",)}, "changed what a person typed of the run"),
            ("texts", {"content": "It co"}, "were cut"),
            ("calls", {"redacted": ("gen_ai.input.messages",)}, "the input of a model call of chooser"),
            ("calls", {"redacted": ("gen_ai.output.messages",)}, "the answer of a model call of chooser"),
            ("calls", {"cut": ("gen_ai.output.messages",)}, "the answer of a model call of chooser had more"),
            ("calls", {"provider": "aws.bedrock"}, "chooser asks a model of aws.bedrock through"),
            ("calls", {"provider": "gcp.gemini"}, "chooser asks a model of gcp.gemini through"),
            ("calls", {"parameters": ("n=3",)}, "several choices (n=3), of which the first is recorded"),
            ("steps", {"redacted": ("gen_ai.tool.call.result",)}, "the result of a call of look_up by seller"),
        ],
    )  # fmt: skip
    def test_a_part_of_the_record_is_missing(
        self, recorded: Trajectory, tmp_path: Path, of: str, changed: dict, said: str
    ) -> None:
        run = {
            "texts": lambda: {"texts": {k: replace(v, **changed) for k, v in recorded.texts.items()}},
            "calls": lambda: {"invocations": tuple(replace(v, **changed) for v in recorded.invocations)},
            "steps": lambda: {"steps": tuple(replace(v, **changed) for v in recorded.steps)},
        }.get(of, lambda: changed)()  # fmt: skip
        assert said in self.refused(replace(recorded, **run), tmp_path)

    def test_cut_arguments_without_marks(self, recorded: Trajectory, tmp_path: Path) -> None:
        cut = json.dumps({"item": "kettle" * 900})
        steps = tuple(replace(step, arguments=truncate(cut, 900)) for step in recorded.steps)
        text = self.refused(replace(recorded, steps=steps), tmp_path)
        assert "the arguments of a call of look_up by seller had more characters" in text
        call = ToolCall("look_up", truncate(cut, 900), "c")
        texts = {key: replace(text, tool_calls=(call,)) for key, text in recorded.texts.items()}
        text = self.refused(replace(recorded, texts=texts), tmp_path)
        assert "the answer of a model call of chooser had more characters" in text

    def test_marks_of_texts_that_no_replay_needs(self, recorded: Trajectory) -> None:
        """A task that no model was shown, and a quoted mark of a cut in whole arguments, are no obstacle."""
        quoted = json.dumps({"item": truncate("kettle" * 900, 900)})
        steps = tuple(replace(step, arguments=quoted) for step in recorded.steps)
        marked = replace(recorded, steps=steps, redacted=("gen_ai.input.messages",))
        assert tape_of(marked).executions[0].arguments


def test_an_exception_of_a_tool_keeps_its_class(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The program's own ``except`` catches it, and its text is the recorded one."""
    program, executed = TEAM.with_name("raising.py"), tmp_path / "executed"
    monkeypatch.setenv("EXECUTED", str(executed))
    with ScriptedLLM(lambda _: "Sorry.") as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", "scripted")
        recorded = record(program, folder=tmp_path, keep="OPENAI_")
        assert last_text(server.requests[0]) == "NoOrder: no order 7; KeyError: 'kettle'"
    executed.unlink()
    done = replay(recorded, Setup((sys.executable, str(program))))
    assert (done.status, done.text, executed.exists()) == ("identical", "", False)
