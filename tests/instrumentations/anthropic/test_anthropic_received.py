"""The Anthropic client: each recorded input is what the model's server received."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

anthropic = pytest.importorskip("anthropic", reason="needs the Anthropic client")

from received_inputs import check_inputs, tools_asked_for
from recorded_calls import a_run, recording, use_tool
from scripted_llm import Call
from scripted_protocols.anthropic_messages import AnthropicMessages, as_chat
from scripted_protocols.server import ScriptedAnswer, ScriptedProvider

from mast_trace_instrumentations.anthropic import AnthropicInstrumentor

if TYPE_CHECKING:
    from collections.abc import Iterator

    from recorded_spans import RecordedSpans

pytestmark = pytest.mark.framework("anthropic")

ROUNDS = 3


@pytest.fixture(params=[True, "full"], ids=["once", "full"])
def inputs(request: pytest.FixtureRequest) -> Iterator[RecordedSpans]:
    """The spans of the test's calls."""
    with recording(AnthropicInstrumentor(), request.param) as spans:
        yield spans


@pytest.fixture
def counting() -> Iterator[ScriptedProvider]:
    """Two calls a round, of equal arguments, beside a few words; an answer in the end."""

    def script(request: dict[str, Any]) -> ScriptedAnswer:
        told = sum(message["role"] == "tool" for message in as_chat(request)["messages"])
        if told >= 2 * ROUNDS:
            return ScriptedAnswer("It is 42.")
        call = Call("look_up", {"key": "x"})
        return ScriptedAnswer("Let me see." if told else "", calls=(call, call), thinking="Well.")

    with ScriptedProvider(AnthropicMessages(), script) as server:
        yield server


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
async def test_of_rounds_with_tools(inputs, counting, stream, asynchronous) -> None:
    """Equal calls keep apart by their ids; the answer that made them is in the history as it is."""
    options = {"base_url": counting.url, "api_key": "scripted", "max_retries": 0}
    history: list[Any] = [{"role": "user", "content": "How much is it?"}]
    asked = {"model": "scripted", "max_tokens": 9, "system": "Be brief.", "messages": history}

    async def answer() -> Any:
        if asynchronous:
            async with anthropic.AsyncAnthropic(**options) as client:
                if not stream:
                    return await client.messages.create(**asked)
                async with client.messages.stream(**asked) as events:
                    return await events.get_final_message()
        with anthropic.Anthropic(**options) as client:
            if not stream:
                return client.messages.create(**asked)
            with client.messages.stream(**asked) as events:
                return events.get_final_message()

    with a_run(inputs):
        calls = [None]
        while calls:
            message = await answer()
            history.append({"role": "assistant", "content": message.content})
            calls = [block for block in message.content if block.type == "tool_use"]
            results = [
                {
                    "type": "tool_result",
                    "tool_use_id": call.id,
                    "content": use_tool(inputs, call.name, call.input, call.id),
                }
                for call in calls
            ]
            history.append({"role": "user", "content": results})

    received = [as_chat(request) for request in counting.requests]
    assert tools_asked_for(received) == {"look_up"}
    assert len(received) == ROUNDS + 1
    check_inputs(inputs, received)
