"""CrewAI recorded by us and by others at the same time: nothing is doubled, nothing is orphaned."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from typing import TYPE_CHECKING, Any

import pytest
from client_peers import Elsewhere, another_provider
from installed import installed

if not installed("crewai.crew"):
    pytest.skip("needs CrewAI; `nox -s framework` has environments", allow_module_level=True)

import crewai_programs as programs
from scripted_llm import ScriptedLLM

from mast_trace_instrumentations.openai import OpenAIInstrumentor

if TYPE_CHECKING:
    from collections.abc import Iterator

    from recorded_spans import RecordedSpans

pytestmark = pytest.mark.framework("crewai")

STEPS = [
    ("message", "user"),
    ("tool", "Researcher"),
    ("tool", "Researcher"),
    ("message", "Researcher"),
    ("message", "user"),
    ("message", "Writer"),
]


def instrumentors(name: str) -> list[Any]:
    """Another tool's instrumentations of CrewAI and of the OpenAI client."""
    if name == "openinference":
        pytest.importorskip("openinference.instrumentation.crewai", reason="not installed here")
        from openinference.instrumentation.crewai import CrewAIInstrumentor
        from openinference.instrumentation.openai import OpenAIInstrumentor as Client
    else:
        pytest.importorskip("opentelemetry.instrumentation.crewai", reason="not installed here")
        from opentelemetry.instrumentation.crewai import CrewAIInstrumentor
        from opentelemetry.instrumentation.openai import OpenAIInstrumentor as Client
    return [CrewAIInstrumentor(), Client()]


@pytest.fixture(params=["ours first", "theirs first"])
def order(request) -> str:
    return request.param


@pytest.fixture(params=["openinference", "openllmetry"])
def theirs(request) -> list[Any]:
    return instrumentors(request.param)


def run_with(recorded: RecordedSpans, theirs: list[Any], provider: Any, order: str) -> list[int]:
    """Run the team under both; return the input tokens of each request, as the server counts."""
    client = OpenAIInstrumentor()
    if order == "theirs first":
        recorded.instrumentor.uninstrument()
        for instrumentor in theirs:
            instrumentor.instrument(tracer_provider=provider)
        recorded.instrumentor.instrument(tracer_provider=recorded.provider)
        client.instrument(tracer_provider=recorded.provider)
    else:
        client.instrument(tracer_provider=recorded.provider)
        for instrumentor in theirs:
            instrumentor.instrument(tracer_provider=provider)
    try:
        with ScriptedLLM(programs.team_script) as server:
            programs.team(server).kickoff()
            return [
                sum(len(json.dumps(m)) for m in request["messages"]) // 4 + 1
                for request in server.requests
            ]
    finally:
        # The last one is removed first: theirs remove the outermost wrapper.
        client.uninstrument()
        if order == "theirs first":
            recorded.instrumentor.uninstrument()
        for instrumentor in theirs:
            instrumentor.uninstrument()


def test_with_one_provider_nothing_is_doubled(recorded, theirs, order) -> None:
    """In one trace with their spans, each message, tool call and token counts once."""
    tokens = run_with(recorded, theirs, recorded.provider, order)
    run = recorded.trajectory()
    assert sorted((step.kind.value, step.agent) for step in run.steps) == sorted(STEPS)
    assert run.input_tokens == sum(tokens)
    assert run.termination_reason == "completed"
    kinds = [invocation.kind for invocation in run.invocations]
    assert (kinds.count("agent"), kinds.count("model")) == (2, 3)
    assert any("mast.framework" not in span.attributes for span in recorded.all)


@pytest.fixture
def elsewhere() -> Iterator[Elsewhere]:
    """A provider of theirs."""
    with another_provider() as provider:
        yield provider


def test_with_a_provider_of_their_own_both_go_on(recorded, theirs, order, elsewhere) -> None:
    """Our root alone is below a span of theirs: the current one when the run began."""
    provider, exporter = elsewhere
    tokens = run_with(recorded, theirs, provider, order)
    known = {span.context.span_id for span in recorded.all}
    outside = [s.name for s in recorded.all if s.parent and s.parent.span_id not in known]
    assert outside == ["invoke_workflow city"]
    run = recorded.trajectory()
    assert sorted((step.kind.value, step.agent) for step in run.steps) == sorted(STEPS)
    assert run.input_tokens == sum(tokens)
    names = [span.name for span in exporter.get_finished_spans()]
    assert sum("chat" in name.lower() for name in names) == len(tokens)


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
