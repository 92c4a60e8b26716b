"""The OpenAI client: each recorded input is what the model's server received."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import openai
import pytest
from received_inputs import check_inputs, tools_asked_for
from recorded_calls import a_run, recording, use_tool
from scripted_llm import Call, Reply, ScriptedLLM, messages_of

from mast_trace_instrumentations.openai import OpenAIInstrumentor

if TYPE_CHECKING:
    from collections.abc import Iterator

    from recorded_spans import RecordedSpans

pytestmark = pytest.mark.framework("openai")

ROUNDS = 3
QUESTION = {"role": "user", "content": "How much is it?"}


@pytest.fixture(params=[True, "full"], ids=["once", "full"])
def inputs(request: pytest.FixtureRequest) -> Iterator[RecordedSpans]:
    """The spans of the test's calls."""
    with recording(OpenAIInstrumentor(), request.param) as spans:
        yield spans


@pytest.fixture
def counting() -> Iterator[ScriptedLLM]:
    """Two calls a round, of equal arguments, beside a few words; an answer in the end."""

    def script(request: dict[str, Any]) -> Reply | str:
        kinds = [message.get("role") or message.get("type") for message in messages_of(request)]
        told = kinds.count("tool") + kinds.count("function_call_output")
        if told >= 2 * ROUNDS:
            return "It is 42."
        call = Call("look_up", {"key": "x"})
        return Reply("Let me see." if told else "", calls=(call, call))

    with ScriptedLLM(script) as server:
        yield server


class Chat:
    """A history of Chat Completions."""

    def __init__(self, inputs: RecordedSpans) -> None:
        self._inputs = inputs
        self.request: dict[str, Any] = {"model": "scripted", "messages": [QUESTION]}

    def take(self, message: dict[str, Any]) -> bool:
        """Append an answer and the results of its calls; return whether there were any."""
        self.request["messages"].append(message)
        for call in message.get("tool_calls") or ():
            function = call["function"]
            told = use_tool(self._inputs, function["name"], function["arguments"], call["id"])
            result = {"role": "tool", "tool_call_id": call["id"], "content": told}
            self.request["messages"].append(result)
        return bool(message.get("tool_calls"))

    @staticmethod
    def assemble(chunks: list[Any]) -> dict[str, Any]:
        """Put the pieces of a streamed answer together, as programs do."""
        text, calls = "", []
        for chunk in chunks:
            for choice in chunk.choices:
                text += choice.delta.content or ""
                calls += [
                    {"id": c.id, "type": "function", "function": c.function.model_dump()}
                    for c in choice.delta.tool_calls or ()
                ]
        message = {"role": "assistant", "content": text or None}
        return {**message, "tool_calls": calls} if calls else message


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
async def test_of_chat_completions(
    inputs: RecordedSpans, counting: ScriptedLLM, stream: bool, asynchronous: bool
) -> None:
    """Rounds of two equal calls keep apart by their ids."""
    options = {"base_url": counting.url, "api_key": "scripted", "max_retries": 0}
    chat = Chat(inputs)
    with a_run(inputs):
        more = True
        while more:
            if asynchronous:
                async with openai.AsyncOpenAI(**options) as client:
                    answer = await client.chat.completions.create(**chat.request, stream=stream)
                    chunks = [chunk async for chunk in answer] if stream else []
            else:
                with openai.OpenAI(**options) as client:
                    answer = client.chat.completions.create(**chat.request, stream=stream)
                    chunks = list(answer) if stream else []
            more = chat.take(
                Chat.assemble(chunks)
                if stream
                else answer.choices[0].message.model_dump(exclude_none=True)
            )
    assert tools_asked_for(counting.requests) == {"look_up"}
    assert len(counting.requests) == ROUNDS + 1
    check_inputs(inputs, counting.requests)


@pytest.mark.skipif(
    not hasattr(openai.OpenAI, "responses") and "responses" not in dir(openai.OpenAI(api_key="x")),
    reason="this version has no Responses",
)
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
async def test_of_responses(
    inputs: RecordedSpans, counting: ScriptedLLM, stream: bool, asynchronous: bool
) -> None:
    """The other interface, whose calls and results are items of their own."""
    options = {"base_url": counting.url, "api_key": "scripted", "max_retries": 0}
    history: list[Any] = [QUESTION]
    request = {"model": "scripted", "instructions": "Be brief.", "stream": stream}
    with a_run(inputs):
        more = True
        while more:
            if asynchronous:
                async with openai.AsyncOpenAI(**options) as client:
                    answer = await client.responses.create(**request, input=history)
                    events = [event async for event in answer] if stream else []
            else:
                with openai.OpenAI(**options) as client:
                    answer = client.responses.create(**request, input=history)
                    events = list(answer) if stream else []
            response = events[-1].response if stream else answer
            calls = [item for item in response.output if item.type == "function_call"]
            history.extend(json.loads(item.model_dump_json()) for item in response.output)
            for call in calls:
                told = use_tool(inputs, call.name, call.arguments, call.call_id)
                history.append(
                    {"type": "function_call_output", "call_id": call.call_id, "output": told}
                )
            more = bool(calls)
    assert tools_asked_for(counting.requests) == {"look_up"}
    assert len(counting.requests) == ROUNDS + 1
    check_inputs(inputs, counting.requests)
