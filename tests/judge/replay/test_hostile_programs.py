"""Programs with habits that make replays hard: identical, or refused with what would help, and nothing is done twice."""

from __future__ import annotations

import re
import runpy
import sys
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from replays import record_all
from scripted_llm import Call, Reply, ScriptedLLM

from mast_trace.exceptions import MastTraceError
from mast_trace_lab.program.setup import Setup
from mast_trace_lab.replay import replay
from mast_trace_lab.replay.masks import NotMaskable, propose

if TYPE_CHECKING:
    from mast_trace.trajectory import Trajectory

HOSTILE = Path(__file__).with_name("hostile.py")
REMEDY = re.compile(r"--set \w+=|`@mast_trace\.tool`|all agents in one process|asked for several")
LEAST = 28
NEITHER = {"temperature"}
"""Habits that are told and have no remedy: no part of a request may differ."""


def answered(request: dict[str, Any]) -> Reply | str:
    if "CALL" in str(request["messages"][-1] if "messages" in request else ""):
        return Reply(calls=(Call("acts", {}),))
    return "So be it."


def ending(run: Trajectory, setup: Setup) -> tuple[str, str]:
    """Return the status of a replay, with masks where they help, and its text."""
    try:
        done = replay(run, setup)
        if done.status == "diverged":
            _, done = propose(run, setup)
    except NotMaskable as error:
        return done.status, f"{done.text} {error}"
    except MastTraceError as error:
        return "refused", str(error)
    return done.status, done.text


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_each_is_identical_or_told_what_would_help(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLACE", str(tmp_path))
    monkeypatch.setenv("OPENAI_API_KEY", "scripted")
    monkeypatch.setattr(sys, "argv", [str(HOSTILE)])
    endings: dict[str, dict[str, str]] = defaultdict(dict)
    with ScriptedLLM(answered) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        for habit in runpy.run_path(str(HOSTILE), run_name="habits")["HABITS"]:
            for file in tmp_path.iterdir():
                file.unlink()
            with monkeypatch.context() as recording:
                recording.setenv("RECORDING", "yes")
                run = record_all(HOSTILE, habit, folder=tmp_path, keep="OPENAI_")[-1]
            (tmp_path / "acts").unlink(missing_ok=True)
            asked = len(server.requests)
            how, text = ending(run, Setup((sys.executable, str(HOSTILE), habit), timeout=20.0))
            endings[how][habit] = text
            assert len(server.requests) == asked, habit
            assert not (tmp_path / "acts").exists(), habit
    identical = endings.pop("identical")
    assert "--set timeout=" in endings["timeout"]["hangs"]
    told = {habit: text for each in endings.values() for habit, text in each.items()}
    helped = {habit for habit, text in told.items() if REMEDY.search(text)}
    assert len(identical) + len(helped) >= LEAST
    assert told.keys() - helped == NEITHER, told
