"""The Google Gen AI client: each recorded input is what the model's server received."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("google.genai", reason="needs the Google Gen AI client")

from google import genai
from received_inputs import check_inputs, tools_asked_for
from recorded_calls import a_run, recording
from scripted_llm import Call
from scripted_protocols.gemini import Gemini, as_chat
from scripted_protocols.server import ScriptedAnswer, ScriptedProvider

from mast_trace_instrumentations.google_genai import GoogleGenAIInstrumentor

if TYPE_CHECKING:
    from collections.abc import Iterator

    from recorded_spans import RecordedSpans

pytestmark = pytest.mark.framework("google_genai")

ROUNDS = 3


@pytest.fixture(params=[True, "full"], ids=["once", "full"])
def inputs(request: pytest.FixtureRequest) -> Iterator[RecordedSpans]:
    """The spans of the test's calls."""
    with recording(GoogleGenAIInstrumentor(), request.param) as spans:
        yield spans


@pytest.fixture
def counting() -> Iterator[ScriptedProvider]:
    """Two calls a round, beside a few words; an answer in the end."""

    def script(request: dict[str, Any]) -> ScriptedAnswer:
        told = sum(message["role"] == "tool" for message in as_chat(request)["messages"])
        if told >= 2 * ROUNDS:
            return ScriptedAnswer("It is 42.")
        calls = (Call("look_up", {"key": f"a{told}"}), Call("look_up", {"key": f"b{told}"}))
        return ScriptedAnswer("Let me see." if told else "", calls=calls, thinking="Well.")

    with ScriptedProvider(Gemini(), script) as server:
        yield server


def look_up(key: str) -> str:
    """Look a number up."""
    return f"42 {key}"


# Older versions do not know annotations that are texts.
look_up.__annotations__ = {"key": str, "return": str}


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
async def test_of_rounds_with_functions(inputs, counting, stream, asynchronous) -> None:
    """The client executes them, and sends its own history each time."""
    client = genai.Client(api_key="scripted", http_options={"base_url": counting.url})
    config = {"system_instruction": "Be brief.", "tools": [look_up]}
    asked = {"model": "scripted", "contents": "How much is it?", "config": config}
    with a_run(inputs):
        if asynchronous and stream:
            async for _piece in await client.aio.models.generate_content_stream(**asked):
                pass
        elif asynchronous:
            await client.aio.models.generate_content(**asked)
        elif stream:
            list(client.models.generate_content_stream(**asked))
        else:
            client.models.generate_content(**asked)

    received = [as_chat(request) for request in counting.requests]
    assert tools_asked_for(received) == {"look_up"}
    assert len(received) > ROUNDS  # old versions stream a round again when it was executed
    check_inputs(inputs, received)
