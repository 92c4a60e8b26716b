"""AG2 classic: each recorded input of a model is what the model's server received."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("autogen.agentchat.group", reason="needs AG2 classic (`import autogen`)")

import autogen_programs as programs
from received_inputs import check_inputs, tools_asked_for
from recorded_spans import RecordedSpans
from scripted_llm import ScriptedLLM

from mast_trace.content import ContentPolicy
from mast_trace_instrumentations.autogen import AutogenInstrumentor

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.framework("autogen")

PROGRAMS: dict[str, Any] = {
    "tools": programs.tools_script,
    "a_tools": programs.tools_script,
    "pattern": programs.pattern_script,
    "a_pattern": programs.pattern_script,
}


@pytest.fixture(params=[True, "full"], ids=["once", "full"])
def inputs(request: pytest.FixtureRequest) -> Iterator[RecordedSpans]:
    """The spans of the test's agents, with each text once and with all texts in full."""
    spans = RecordedSpans.of(AutogenInstrumentor(), ContentPolicy(capture=request.param))
    yield spans
    spans.instrumentor.uninstrument()


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
async def test_however_agents_talk(
    inputs: RecordedSpans, monkeypatch: pytest.MonkeyPatch, program: str, stream: bool
) -> None:
    """Parallel, failing, unknown and malformed calls, and hand-overs that are calls."""
    model = programs.model
    monkeypatch.setattr(programs, "model", lambda url: model(url, stream=stream))
    with ScriptedLLM(PROGRAMS[program]) as server:
        ran = getattr(programs, program)(server.url)
        if program.startswith("a_"):
            await ran
    assert all(bool(request.get("stream")) is stream for request in server.requests)
    assert tools_asked_for(server.requests)
    check_inputs(inputs, server.requests, joined_by="\n")
