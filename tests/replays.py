"""Records programs in processes of their own and replays them."""

from __future__ import annotations

import atexit
import json
import os
import runpy
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from program_runs import run_program
from scripted_llm import ScriptedLLM, messages_of

from mast_trace.testing import replayed
from mast_trace.trajectory import SpanRecord, read_trajectory, to_dict
from mast_trace_lab.program.forking import LazyParent
from mast_trace_lab.program.setup import Setup
from mast_trace_lab.replay import replay

if TYPE_CHECKING:
    from mast_trace.trajectory import Trajectory
    from mast_trace_lab.replay import Replayed

EXAMPLES = Path(__file__).parent.parent / "examples"
RECORDER = Path(__file__).parent / "record_program.py"
EARLIER = Path(__file__).parent / "judge" / "replay" / "recorded"
"""Spans of runs as version 0.1.0 wrote them before there were replays."""
NOWHERE = "http://127.0.0.1:9/v1"
"""Address of a model API at which no server listens."""


@cache
def parents(*modules: str) -> LazyParent:
    """Return what replays of tests are forked from: each worker imports the clients once."""
    made = LazyParent(("openai", "time_machine", *modules))
    atexit.register(made.close)
    return made


def record(program: Path, *arguments: str, folder: Path, keep: str = "none") -> Trajectory:
    """Run a program unchanged and return its only run; keeps variables that begin with ``keep``."""
    (run,) = record_all(program, *arguments, folder=folder, keep=keep)
    return run


def record_all(
    program: Path, *arguments: str, folder: Path, keep: str = "none", typed: str = ""
) -> list[Trajectory]:
    """Run a program unchanged and return its runs, while a person types lines."""
    file = folder / "recorded.jsonl"
    command = (sys.executable, RECORDER, file, program, *arguments)
    run_program(*command, status=0, env=_environment(keep), input=typed)
    spans = [SpanRecord(**json.loads(line)) for line in file.read_text("utf-8").splitlines()]
    traces: dict[str, list[SpanRecord]] = {}
    for span in sorted(spans, key=lambda each: each.start):
        traces.setdefault(span.trace_id, []).append(span)
    return [read_trajectory(each) for each in traces.values()]


def check_replay(program: Path, *arguments: str, folder: Path, keep: str = "none") -> Replayed:
    """Record and replay a program, and assert that the runs are identical and that no tool is executed.

    It is replayed as a child, and then in this process: the recorded run, and the child's run.

    Returns:
        The result of the child's replay, whose run may be replayed in turn.
    """
    recorded = record(program, *arguments, folder=folder, keep=keep)
    done = replay(recorded, Setup((sys.executable, str(program), *arguments)))
    assert (done.status, done.text) == ("identical", "")
    report = done.report
    assert report is not None
    assert report.served_exchanges > 0
    assert report.served_executions > 0
    assert report.live_executions == 0
    assert done.exit_status == 0
    assert done.run is not None
    for run in (recorded, done.run):
        replay_here(run, program, *arguments, folder=folder)
    return done


def replay_here(run: Trajectory, program: Path, *arguments: str, folder: Path) -> Trajectory:
    """Replay a run from a file in this process, as a test of a user does, and return the new run.

    Asserts that the runs are identical, that no tool is executed, and that no model is asked: none
    listens at the program's address.
    """
    file = folder / "run.jsonl"
    file.write_text(json.dumps(to_dict(run)) + "\n", "utf-8")
    with pytest.MonkeyPatch.context() as patch, replayed(file) as done:
        patch.setenv("OPENAI_BASE_URL", NOWHERE)
        patch.setenv("OPENAI_API_KEY", "none")
        patch.setattr(sys, "argv", [str(program), *arguments])
        patch.syspath_prepend(str(program.parent))
        runpy.run_path(str(program), run_name="__main__")
    done.assert_identical()
    report = done.report
    assert report.served_exchanges > 0
    assert report.served_executions > 0
    assert (report.live_exchanges, report.live_executions) == (0, 0)
    return done.captured.trajectory()


def earlier_run(name: str) -> Trajectory:
    """Return a run that was recorded before there were replays."""
    lines = (EARLIER / f"{name}.jsonl").read_text("utf-8").splitlines()
    return read_trajectory([SpanRecord(**json.loads(line)) for line in lines])


def check_earlier(name: str, program: Path, *arguments: str, folder: Path) -> None:
    """Assert that an earlier record is replayed by its program, and that its replay is, too."""
    again = replay_here(earlier_run(name), program, *arguments, folder=folder)
    replay_here(again, program, *arguments, folder=folder)


def check_person(program: Path, typed: str, folder: Path) -> None:
    """Record a program that asks a person, and assert that its replay is identical without one."""
    with (
        ScriptedLLM(lambda request: f"Answer to message {len(messages_of(request))}.") as server,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setenv("OPENAI_BASE_URL", server.url)
        patch.setenv("OPENAI_API_KEY", "scripted")
        (recorded,) = record_all(program, folder=folder, keep="OPENAI_", typed=typed)
        assert recorded.human_inputs == tuple(typed.splitlines())
        asked = len(server.requests)
        done = replay(recorded, Setup((sys.executable, str(program))))
        assert (done.status, done.text, done.exit_status) == ("identical", "", 0)
        assert len(server.requests) == asked > 1


def _environment(keep: str) -> dict[str, str]:
    return {
        key: value
        for key, value in os.environ.items()
        if key.startswith(keep) or not key.startswith("OPENAI_")
    }
