"""The OpenAI client against the scripted server, inside of a hand-made run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from recorded_spans import RecordedSpans
from scripted_llm import Call, Reply, ScriptedLLM, last_text

pytest.importorskip("openai", reason="needs the openai client")

from mast_trace_instrumentations.openai import OpenAIInstrumentor

if TYPE_CHECKING:
    from collections.abc import Iterator


def script(request: dict[str, Any]) -> Reply | str:
    """Answer, call a tool, or fail, as the last message asks for."""
    asked = last_text(request)
    if "tool" in asked:
        return Reply("Let me see.", calls=(Call("look_up", {"key": "x"}, id="call_1"),))
    if "fail" in asked:
        return Reply("scripted failure", status=400)
    return "An answer that comes in several pieces."


@pytest.fixture
def recorded() -> Iterator[RecordedSpans]:
    """The spans of the test."""
    spans = RecordedSpans.of(OpenAIInstrumentor())
    yield spans
    spans.instrumentor.uninstrument()


@pytest.fixture
def server() -> Iterator[ScriptedLLM]:
    """The scripted server."""
    with ScriptedLLM(script) as serving:
        yield serving


@pytest.fixture
def options(server: ScriptedLLM) -> dict[str, Any]:
    """Return a client of the scripted server."""
    return {"base_url": server.url, "api_key": "scripted", "max_retries": 0}
