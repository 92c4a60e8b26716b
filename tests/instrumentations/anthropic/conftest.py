"""The Anthropic client against a server that speaks its protocol, inside of a hand-made run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from recorded_calls import ANSWER
from recorded_spans import RecordedSpans
from scripted_llm import Call
from scripted_protocols.anthropic_messages import AnthropicMessages
from scripted_protocols.server import ScriptedAnswer, ScriptedProvider

from mast_trace_instrumentations.anthropic import AnthropicInstrumentor

if TYPE_CHECKING:
    from collections.abc import Iterator


CALL = Call("look_up", {"key": "x", "more": "y" * 20}, "t1")
ANSWERS = {
    "tool": ScriptedAnswer("Let me see.", calls=(CALL,)),
    "think": ScriptedAnswer("Thought.", thinking="First this, then that."),
    "cache": ScriptedAnswer("Cached.", cached=100, stored=20),
    "refuse": ScriptedAnswer("scripted failure", status=400),
    "break": ScriptedAnswer("scripted failure", status=500),
    "reset": ScriptedAnswer(ANSWER, reset_after=5),
}


def script(request: dict[str, Any]) -> ScriptedAnswer | str:
    """Answer, call a tool, think, or fail, as the last message asks for."""
    asked = str(request["messages"][-1]["content"])
    return next((each for word, each in ANSWERS.items() if word in asked), ANSWER)


@pytest.fixture
def recorded() -> Iterator[RecordedSpans]:
    """The spans of the test."""
    spans = RecordedSpans.of(AnthropicInstrumentor())
    yield spans
    spans.instrumentor.uninstrument()


@pytest.fixture
def server() -> Iterator[ScriptedProvider]:
    """The scripted server."""
    with ScriptedProvider(AnthropicMessages(), script) as serving:
        yield serving


@pytest.fixture
def options(server: ScriptedProvider) -> dict[str, Any]:
    """Return a client of the scripted server."""
    return {"base_url": server.url, "api_key": "scripted", "max_retries": 0}
