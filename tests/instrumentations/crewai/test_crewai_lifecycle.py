"""Switching CrewAI's instrumentation on and off, early, late, and where the framework has changed."""

from __future__ import annotations

import inspect
import logging
import subprocess
import sys
import textwrap
from dataclasses import replace
from importlib import import_module
from typing import Any

import pytest
from installed import installed

if not installed("crewai.crew"):
    pytest.skip("needs CrewAI; `nox -s framework` has environments", allow_module_level=True)

import crewai_programs as programs
from recorded_spans import RecordedSpans
from scripted_llm import Reply, ScriptedLLM

from mast_trace_instrumentations.crewai import CrewAIInstrumentor

pytestmark = pytest.mark.framework("crewai")


def targets() -> dict[str, Any]:
    """Every attribute that is replaced and that this version has, as it is now."""
    found: dict[str, Any] = {}
    for patch in CrewAIInstrumentor.patches:
        try:
            owner: Any = import_module(patch.module)
            *path, name = patch.target.split(".")
            for step in path:
                owner = getattr(owner, step)
            found[patch.path] = inspect.getattr_static(owner, name)
        except (ImportError, AttributeError):
            assert patch.optional, f"{patch.path} is gone"
    return found


def test_off_again_everything_is_as_it_was() -> None:
    """Each attribute is the very object that it was before; twice on and off is as good as once."""
    before = targets()
    instrumentor = CrewAIInstrumentor()
    for _ in range(2):
        RecordedSpans.of(instrumentor)
        assert all(targets()[path] is not original for path, original in before.items())
        assert instrumentor.state.missing == []
        assert set(instrumentor.state.patched) == set(before)
        instrumentor.uninstrument()
        instrumentor.uninstrument()
        assert all(targets()[path] is original for path, original in before.items())


def sequence(server):
    return programs.team(server).kickoff().raw


def hierarchy(server):
    return programs.managed(server).kickoff().raw


def unknown_coworker(server):
    return programs.delegating(server).kickoff().raw


def guarded(server):
    def number_given(output):
        return ("million" in output.raw, output.raw if "million" in output.raw else "a number!")

    return programs.solo(server, guardrail=number_given).kickoff().raw


def refused_tool(server):
    return programs.solo(server, tools=(programs.lookup,)).kickoff().raw


def failing(server):
    return programs.solo(server, max_retry_limit=0).kickoff().raw


PARITY = [
    (sequence, programs.team_script),
    (hierarchy, programs.managed_script),
    (unknown_coworker, programs.delegating_script("Nobody")),
    (guarded, lambda request: programs.final(request, "2.1 million")),
    (refused_tool, programs.calling_script(programs.Call("no_such_tool", {}))),
    (failing, lambda _request: Reply("no such model", status=400)),
]


def outcome(program: Any, script: Any) -> tuple[str, str, list[Any]]:
    """A program's result or exception, and what its models were sent."""
    with ScriptedLLM(script) as server:
        try:
            result, error = program(server), ""
        except Exception as raised:
            # The text holds the address of the server.
            result, error = "", type(raised).__name__
        return result, error, [request["messages"] for request in server.requests]


@pytest.mark.parametrize(
    ("program", "script"), PARITY, ids=[program.__name__ for program, _ in PARITY]
)
def test_a_program_does_the_same_with_and_without(program, script) -> None:
    """Same results, same exceptions, and the models are sent the same."""
    plain = outcome(program, script)
    spans = RecordedSpans.of(CrewAIInstrumentor())
    try:
        traced = outcome(program, script)
    finally:
        spans.instrumentor.uninstrument()
    assert traced == plain
    spans.check_shape()


def test_the_framework_may_be_imported_afterwards() -> None:
    """Instrumenting imports nothing of CrewAI; the patches come with the program's own import."""
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            textwrap.dedent(
                """
                import sys
                from recorded_spans import RecordedSpans
                from mast_trace_instrumentations.crewai import CrewAIInstrumentor
                instrumentor = CrewAIInstrumentor()
                assert instrumentor.present()
                spans = RecordedSpans.of(instrumentor)
                loaded = {name.split(".")[0] for name in sys.modules}
                assert not loaded & {"crewai", "litellm", "openai"}
                import crewai_programs as programs
                from scripted_llm import ScriptedLLM
                with ScriptedLLM(programs.team_script) as server:
                    programs.team(server).kickoff()
                    script = programs.calling_script(programs.Call("no_such_tool", {}))
                    server.script = script
                    programs.solo(server, tools=(programs.lookup,)).kickoff()
                spans.check_shape(runs=2)
                counts = spans.counts()
                print("spans", counts["send_message"], counts["invoke_agent"], spans.named("execute_tool")[-1].name)
                print("missing", instrumentor.state.missing)
                """
            ),
        ],
        capture_output=True,
        text=True,
        check=False,
        env={"PYTHONPATH": ":".join(sys.path)},
    )
    assert done.returncode == 0, done.stderr
    assert "spans 6 3 execute_tool no_such_tool" in done.stdout
    assert done.stdout.strip().endswith("missing []")


def test_a_target_that_vanished_is_one_warning(monkeypatch, caplog) -> None:
    """A version without one of the targets: it is named once, and everything else is recorded."""
    vanished = "BaseAgentTool._execute"
    rows = tuple(
        replace(p, target=p.target + "_gone") if p.target == vanished else p
        for p in CrewAIInstrumentor.patches
    )
    monkeypatch.setattr(CrewAIInstrumentor, "patches", rows)
    with caplog.at_level(logging.WARNING, logger="mast_trace"):
        spans = RecordedSpans.of(CrewAIInstrumentor())
    try:
        with ScriptedLLM(programs.team_script) as server:
            programs.team(server).kickoff()
        missing = list(spans.instrumentor.state.missing)
    finally:
        spans.instrumentor.uninstrument()
    warnings = [r.getMessage() for r in caplog.records if r.name == "mast_trace"]
    assert [vanished in warning for warning in warnings] == [True]
    assert len(missing) == 1
    spans.check_shape()
    assert len(spans.sent_messages()) == 4
    assert spans.named("execute_tool")


def test_an_error_of_ours_stays_ours(recorded, monkeypatch, caplog) -> None:
    """Telemetry that raises everywhere changes nothing in the program, and is logged."""

    def broken(*_args: Any, **_kwargs: Any) -> Any:
        raise RuntimeError("telemetry is out of order")

    with ScriptedLLM(programs.team_script) as server:
        plain = programs.team(server).kickoff().raw
        recorded.exporter.clear()
        monkeypatch.delenv("PYTEST_CURRENT_TEST")
        for name in ("run", "agent", "message", "tool", "chat", "inputs"):
            monkeypatch.setattr(recorded.instrumentor.telemetry, name, broken)
        assert programs.team(server).kickoff().raw == plain
    assert recorded.all == []
    assert "telemetry is out of order" in caplog.text
