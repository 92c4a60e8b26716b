"""Lessons that a run was given are given again in its replay, and nothing is fetched."""

from __future__ import annotations

import itertools
import json
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from judge.replay import taught
from replays import NOWHERE, record
from scripted_llm import ScriptedLLM
from sdk.experiment.hostile_lessons import response, server

from mast_trace.testing import capture_spans, replayed
from mast_trace.trajectory import to_dict, trajectory_from_dict
from mast_trace_lab.program.setup import Setup
from mast_trace_lab.replay import replay

if TYPE_CHECKING:
    import socket
    from collections.abc import Iterator

    from mast_trace.trajectory import Trajectory

pytestmark = pytest.mark.end_to_end

TAUGHT = Path(__file__).parent / "taught.py"


@pytest.fixture
def lessons(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[bytes]]:
    """A web view with another lesson at each request; yields the requests."""
    numbers = itertools.count(1)

    def teach(connection: socket.socket) -> None:
        number = next(numbers)
        item = {"step": number, "advice": f"Look twice, {number}."}
        answer = {
            "text": f"Lesson {number}.",
            "placebo": "",
            "items": [item],
            "version": f"v{number}",
        }
        connection.sendall(response(json.dumps(answer).encode()))

    with server(teach) as (url, requests):
        monkeypatch.setenv("MAST_TRACE_FEEDBACK_URL", url)
        yield requests


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedLLM]:
    with ScriptedLLM(lambda _: "59 EUR") as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", "scripted")
        yield server


def again(recorded: Trajectory, monkeypatch: pytest.MonkeyPatch) -> tuple[str, str]:
    """Replay the program by the command's own way; no model can be reached."""
    monkeypatch.setenv("OPENAI_BASE_URL", NOWHERE)
    done = replay(recorded, Setup((sys.executable, str(TAUGHT), "marked")))
    return done.status, done.text


def test_a_replay_gives_the_recorded_lessons(
    lessons: list[bytes], model: ScriptedLLM, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded = record(TAUGHT, "marked", folder=tmp_path, keep="OPENAI_")
    (prompt,) = [each["messages"][0]["content"] for each in model.requests]
    assert prompt == "You are the clerk. Lesson 1. ['Look twice, 1.'] v1"
    assert len(recorded.given_lessons) == 1
    assert len(lessons) == 1
    exported = trajectory_from_dict(json.loads(json.dumps(to_dict(recorded))))
    assert again(exported, monkeypatch) == ("identical", "")
    assert len(lessons) == 1
    assert len(model.requests) == 1


@pytest.mark.parametrize("way", ["bare", "inside", "dated", "twice"])
def test_lessons_belong_to_their_run(lessons: list[bytes], model: ScriptedLLM, way: str) -> None:
    """Without a mark, in the run, for a dated task, and several in one run: each question gets its own again."""
    runs = []
    with capture_spans(["openai"]) as captured:
        for _ in range(2):
            taught.main(way)
        runs = captured.trajectories()
    own = [len(run.given_lessons) for run in runs]
    assert own == ([3, 3] if way == "twice" else [1, 1])
    fetched, asked = len(lessons), len(model.requests)
    for run in reversed(runs):
        with replayed(run, frameworks=["openai"]) as replay_of:
            taught.main(way)
        replay_of.assert_identical()
        # The replay's own record has them as well, so that it can be replayed.
        (once_more,) = replay_of.captured.trajectories()
        assert once_more.given_lessons == run.given_lessons
    assert (len(lessons), len(model.requests)) == (fetched, asked)


def test_a_failed_question_fails_again(model: ScriptedLLM, monkeypatch: pytest.MonkeyPatch) -> None:
    """The web view was away in the recorded run and is back; the replay does not ask it."""
    monkeypatch.setenv("MAST_TRACE_FEEDBACK_URL", "http://127.0.0.1:9")
    with capture_spans(["openai"]) as captured:
        taught.main("bare")
    run = captured.trajectory()
    with replayed(run, frameworks=["openai"]) as replay_of:
        taught.main("bare")
    replay_of.assert_identical()
    (given,) = run.given_lessons
    assert "does not answer" in json.loads(given)["reason"]


def test_a_record_without_lessons_gives_none(
    lessons: list[bytes], model: ScriptedLLM, caplog: pytest.LogCaptureFixture
) -> None:
    """A run of the previous version does not tell its lessons: none are fetched, and the log says so."""
    with capture_spans(["openai"]) as captured:
        taught.main("marked")
    run = replace(captured.trajectory(), given_lessons=())
    with replayed(run, frameworks=["openai"]) as replay_of, suppress(Exception):
        taught.main("marked")
    divergence = replay_of.report.divergence
    assert divergence is not None
    assert "Lesson 1." in divergence.text
    assert "the record of the run has none for this question" in caplog.text
    assert len(lessons) == 1
    assert len(model.requests) == 1
