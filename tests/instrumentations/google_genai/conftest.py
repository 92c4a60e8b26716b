"""The Google Gen AI client against a server that speaks its protocol, inside of a hand-made run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from recorded_calls import ANSWER
from recorded_spans import recorded_by
from scripted_llm import Call
from scripted_protocols.gemini import Gemini
from scripted_protocols.server import ScriptedAnswer, ScriptedProvider

from mast_trace_instrumentations.google_genai import GoogleGenAIInstrumentor

if TYPE_CHECKING:
    from collections.abc import Iterator


CALL = Call("look_up", {"key": "x"})
ANSWERS = {
    "functionResponse": ScriptedAnswer("It is 42."),
    "tool": ScriptedAnswer("Let me see.", calls=(CALL,)),
    "both": ScriptedAnswer(calls=(CALL, Call("fail", {"key": "y"}))),
    "think": ScriptedAnswer("Thought.", thinking="First this, then that."),
    "cache": ScriptedAnswer("Cached.", cached=100),
    "refuse": ScriptedAnswer("scripted failure", status=400),
    "break": ScriptedAnswer("scripted failure", status=500),
    "reset": ScriptedAnswer(ANSWER, reset_after=2),
}

recorded = recorded_by(GoogleGenAIInstrumentor)


def script(request: dict[str, Any]) -> ScriptedAnswer | str:
    """Answer, call a function, think, or fail, as the last content asks for."""
    asked = str(request["contents"][-1]["parts"])
    return next((each for word, each in ANSWERS.items() if word in asked), ANSWER)


@pytest.fixture
def server() -> Iterator[ScriptedProvider]:
    """The scripted server."""
    with ScriptedProvider(Gemini(), script) as serving:
        yield serving


@pytest.fixture
def options(server: ScriptedProvider) -> dict[str, Any]:
    """Return a client of the scripted server."""
    return {"api_key": "scripted", "http_options": {"base_url": server.url}}
