"""CrewAI recorded by us and by others at the same time: nothing is doubled, nothing is orphaned."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest
from installed import installed

if not installed("crewai.crew"):
    pytest.skip("needs CrewAI; `nox -s framework` has environments", allow_module_level=True)

import crewai_programs as programs
from scripted_llm import ScriptedLLM

from mast_trace_lab.program.forking import NotForkable, PreparedParent

pytestmark = pytest.mark.framework("crewai")


def test_with_crewais_own_telemetry() -> None:
    """CrewAI's anonymous spans go to a provider of its own; ours are the same with it as without."""
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            textwrap.dedent(
                """
                import os
                import crewai_programs as programs
                from crewai.telemetry import Telemetry
                from recorded_spans import RecordedSpans
                from scripted_llm import ScriptedLLM
                from mast_trace_instrumentations.crewai import CrewAIInstrumentor

                assert Telemetry().ready
                spans = RecordedSpans.of(CrewAIInstrumentor())
                with ScriptedLLM(programs.team_script) as server:
                    programs.team(server).kickoff()
                spans.check_shape()
                counts = spans.counts()
                print("spans", counts["send_message"], counts["invoke_agent"], counts["chat"])
                os._exit(0)  # not waiting for an exporter that nobody answers
                """
            ),
        ],
        capture_output=True,
        text=True,
        check=False,
        env={
            "PYTHONPATH": ":".join(sys.path),
            "PYTHONUNBUFFERED": "1",
            "MAST_TRACE_TEST_CREWAI_TELEMETRY": "1",
            # Its data would be sent; it stays here.
            "HTTPS_PROXY": "http://127.0.0.1:9",
            "NO_PROXY": "127.0.0.1",
        },
    )
    assert done.returncode == 0, done.stderr
    assert "spans 4 2 3" in done.stdout


def test_its_telemetry_keeps_no_replay_from_being_forked(monkeypatch: pytest.MonkeyPatch) -> None:
    """It starts a thread when CrewAI is imported, unless it is off: a thread is nothing that a fork takes along."""

    def forkable() -> bool:
        try:
            with PreparedParent(sys.executable, ("crewai",)):
                return True
        except NotForkable:
            return False

    monkeypatch.setenv("CREWAI_DISABLE_TELEMETRY", "true")
    quiet = forkable()
    monkeypatch.delenv("CREWAI_DISABLE_TELEMETRY")
    assert forkable() == quiet


def test_with_a_trace_session_of_crewai(recorded, elsewhere) -> None:
    """CrewAI's own detailed spans go on beside ours, and change nothing of them."""
    tracing = pytest.importorskip("crewai.telemetry.tracing", reason="this version has no sessions")
    _, exporter = elsewhere
    session = tracing.TraceSession("a-run", [exporter])
    with ScriptedLLM(programs.team_script) as server:
        with session.activate():
            programs.team(server).kickoff()
        session.shutdown()
    recorded.check_shape()
    assert recorded.counts() == {
        "invoke_workflow": 1,
        "send_message": 4,
        "invoke_agent": 2,
        "chat": 3,
        "execute_tool": 2,
    }
    assert exporter.get_finished_spans()
