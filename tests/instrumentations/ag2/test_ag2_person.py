"""Programs on AG2 1.x that ask a person through hooks replay identically without the person."""

from __future__ import annotations

import sys
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("ag2.network", reason="needs AG2 1.x (`import ag2`)")

from replays import parents, record_all
from scripted_llm import Call, Reply, ScriptedLLM, last_text, messages_of

from mast_trace.trajectory import StepKind
from mast_trace_lab.program.setup import Setup
from mast_trace_lab.replay import replay

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mast_trace.trajectory import Trajectory

pytestmark = [pytest.mark.framework("ag2"), pytest.mark.end_to_end]

PERSON = Path(__file__).parent / "ag2_person.py"
TYPED = {
    "tool": "y\n",
    "thread": "n\n",
    "approval": "y\n",
    "denied": "n\n",
    "twice": "y\ny\n",
    "own": "",
}
"""Lines that the person types, by way; ``denied`` is another answer to ``approval``."""


def script(request: dict[str, Any]) -> Reply | str:
    """Call each of the tools once, then tell the last result."""
    names = [each["function"]["name"] for each in request["tools"]]
    results = [each for each in messages_of(request) if each["role"] == "tool"]
    if len(results) < len(names):
        return Reply(calls=(Call(names[len(results)], {"what": "a.txt"}),))
    return f"Done: {last_text(request)}"


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedLLM]:
    """The model."""
    with ScriptedLLM(script) as serving:
        monkeypatch.setenv("OPENAI_BASE_URL", serving.url)
        monkeypatch.setenv("OPENAI_API_KEY", "scripted")
        monkeypatch.setenv("EXECUTED", str(tmp_path / "executed"))
        yield serving


def recorded(way: str, folder: Path) -> tuple[Trajectory, list[str]]:
    """Return the run of a way, and the command that makes it."""
    option = "approval" if way == "denied" else way
    (run,) = record_all(PERSON, option, folder=folder, keep="OPENAI_", typed=TYPED[way])
    return run, [sys.executable, str(PERSON), option]


@pytest.mark.parametrize("way", TYPED)
def test_a_hook_is_answered_as_in_the_recorded_run(
    way: str, server: ScriptedLLM, tmp_path: Path
) -> None:
    """Typed texts are typed again where they are asked for; tools that asked are answered and ask no more."""
    run, command = recorded(way, tmp_path)
    executed = (tmp_path / "executed").read_text().split() if way != "denied" else []
    assert run.human_inputs == tuple(TYPED[way].split())
    said = [step for step in run.steps if step.kind is StepKind.MESSAGE]
    answers = [(question, step) for question, step in pairwise(said) if step.text in {"yes", "no"}]
    assert answers, "a person's answer is a message"
    assert all(step.in_reply_to == question.message_id for question, step in answers)
    assert run.outcome == ("failure" if way == "thread" else "success")
    (tmp_path / "executed").unlink(missing_ok=True)
    asked = len(server.requests)
    done = replay(run, Setup(command, parent=parents("ag2")))
    assert (done.status, done.text, done.exit_status) == ("identical", "", 0)
    assert len(server.requests) == asked
    assert not (tmp_path / "executed").exists(), "a tool was executed"
    assert executed or way == "denied"


def test_a_question_that_was_not_asked_is_a_divergence(server: ScriptedLLM, tmp_path: Path) -> None:
    """A run whose hook asked nobody has no text for a hook that asks."""
    run, command = recorded("own", tmp_path)
    assert run.human_inputs == ()
    assert len(server.requests) == 2
    done = replay(run, Setup([*command[:-1], "approval"], parent=parents("ag2")))
    assert done.status == "diverged"
