"""LiteLLM: each recorded input is what the model's server received."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

litellm = pytest.importorskip("litellm", reason="needs LiteLLM")

from received_inputs import check_inputs, tools_asked_for
from recorded_calls import a_run, recording, use_tool
from scripted_llm import Call
from scripted_protocols.anthropic_messages import AnthropicMessages, as_chat
from scripted_protocols.server import ScriptedAnswer, ScriptedProvider

from mast_trace_instrumentations.litellm import LiteLLMInstrumentor

if TYPE_CHECKING:
    from collections.abc import Iterator

    from recorded_spans import RecordedSpans

pytestmark = pytest.mark.framework("litellm")

ROUNDS = 3


@pytest.fixture(params=[True, "full"], ids=["once", "full"])
def inputs(request: pytest.FixtureRequest) -> Iterator[RecordedSpans]:
    """The spans of the test's calls."""
    with recording(LiteLLMInstrumentor(), request.param) as spans:
        yield spans


@pytest.fixture
def counting() -> Iterator[ScriptedProvider]:
    """Two calls a round, of equal arguments, beside a few words; an answer in the end."""

    def script(request: dict[str, Any]) -> ScriptedAnswer:
        told = sum(message["role"] == "tool" for message in as_chat(request)["messages"])
        if told >= 2 * ROUNDS:
            return ScriptedAnswer("It is 42.")
        call = Call("look_up", {"key": "x"})
        return ScriptedAnswer("Let me see.", calls=(call, call))

    with ScriptedProvider(AnthropicMessages(), script) as server:
        yield server


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
async def test_of_rounds_with_tools(inputs, counting, stream) -> None:
    """In OpenAI's words on the one side, and in Anthropic's on the other."""
    history: list[Any] = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "How much is it?"},
    ]
    parameters = {"type": "object", "properties": {"key": {"type": "string"}}}
    asked = {
        "model": "anthropic/claude-sonnet-4-5-20250929",
        "api_base": counting.url,
        "api_key": "scripted",
        "messages": history,
        "tools": [{"type": "function", "function": {"name": "look_up", "parameters": parameters}}],
    }
    with a_run(inputs):
        calls: Any = True
        while calls:
            answer = await litellm.acompletion(**asked, stream=stream)
            if stream:
                answer = litellm.stream_chunk_builder([chunk async for chunk in answer])
            message = answer.choices[0].message
            history.append(message.model_dump(exclude_none=True))
            calls = message.tool_calls
            for call in calls or ():
                function = call.function
                told = use_tool(inputs, function.name, function.arguments, call.id)
                history.append({"role": "tool", "tool_call_id": call.id, "content": told})

    received = [as_chat(request) for request in counting.requests]
    assert tools_asked_for(received) == {"look_up"}
    assert len(received) == ROUNDS + 1
    check_inputs(inputs, received)
