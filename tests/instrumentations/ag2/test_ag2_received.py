"""AG2 1.x: each recorded input of a model is what the model's server received."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("ag2.network", reason="needs AG2 1.x (`import ag2`)")

import ag2_programs as programs
from received_inputs import check_inputs, tools_asked_for
from recorded_spans import RecordedSpans
from scripted_llm import ScriptedLLM

from mast_trace.content import ContentPolicy
from mast_trace_instrumentations.ag2 import AG2Instrumentor

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.framework("ag2")


@pytest.fixture(params=[True, "full"], ids=["once", "full"])
def inputs(request: pytest.FixtureRequest) -> Iterator[RecordedSpans]:
    """The spans of the test's agents, with each text once and with all texts in full."""
    spans = RecordedSpans.of(AG2Instrumentor(), ContentPolicy(capture=request.param))
    yield spans
    spans.instrumentor.uninstrument()


@pytest.mark.parametrize("streaming", [False, True], ids=["whole", "streamed"])
async def test_of_parallel_failing_and_unknown_calls(inputs: RecordedSpans, streaming: bool):
    """Four native calls at once, whole and in pieces."""
    with ScriptedLLM(programs.tools_script) as server:
        await programs.tools(server.url, streaming=streaming)
    assert len(tools_asked_for(server.requests)) == 4
    check_inputs(inputs, server.requests, joined_by="\n")


@pytest.mark.parametrize("program", ["human", "as_tool", "subtasks", "workflow", "delegate"])
async def test_of_calls_that_lead_to_others(inputs: RecordedSpans, program: str) -> None:
    """A person, other agents, and a network behind a tool."""
    script: Any = getattr(programs, f"{program}_script")
    with ScriptedLLM(script) as server:
        await getattr(programs, program)(server.url)
    assert tools_asked_for(server.requests)
    check_inputs(inputs, server.requests, joined_by="\n", in_order=False)
