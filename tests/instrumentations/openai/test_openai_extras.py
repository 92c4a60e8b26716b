"""Programs that read reasoning, citations and refusals, or send them back, replay identically."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import openai
import pytest
from scripted_llm import Reply, ScriptedLLM

import mast_trace
from mast_trace import semconv
from mast_trace.testing import capture_spans, replayed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.framework("openai")

HAS_RESPONSES = "responses" in dir(openai.OpenAI(api_key="x"))
CITED = {
    "type": "url_citation",
    "url_citation": {"start_index": 0, "end_index": 5, "title": "Fares", "url": "https://x.org/f"},
}
MESSAGES: dict[str, dict[str, Any]] = {
    "cite": {"content": "It is 79.", "annotations": [CITED]},
    "refuse": {"content": None, "refusal": "I will not."},
    "think": {"content": "79.", "reasoning_content": "The list says 79, so it is 79."},
}
"""Messages of Chat Completions by the word that asks for them."""

NOTE = {"type": "url_citation", "start_index": 0, "end_index": 2, "title": "F", "url": "https://x"}
SAID = {"type": "message", "role": "assistant", "status": "completed"}
OUTPUTS: dict[str, list[dict[str, Any]]] = {
    "cite": [
        {
            "type": "reasoning",
            "id": "rs_1",
            "summary": [{"type": "summary_text", "text": "Look it up."}],
            "encrypted_content": "gAAAA" * 9,
        },
        {"type": "web_search_call", "id": "ws_1", "status": "completed"},
        {
            **SAID,
            "id": "msg_1",
            "content": [
                {"type": "output_text", "text": "It is ", "annotations": []},
                {"type": "output_text", "text": "79.", "annotations": [NOTE]},
            ],
        },
    ],
    "refuse": [{**SAID, "id": "m2", "content": [{"type": "refusal", "refusal": "I will not."}]}],
    "think": [
        {"type": "reasoning", "id": "rs_3", "summary": []},
        {
            "type": "function_call",
            "id": "fc_3",
            "call_id": "call_3",
            "name": "look_up",
            "arguments": "{}",
            "status": "completed",
        },
        {
            **SAID,
            "id": "msg_3",
            "content": [{"type": "output_text", "text": "One moment.", "annotations": []}],
        },
    ],
}
"""Outputs of Responses, likewise."""


def script(request: dict[str, Any]) -> Reply | str:
    """Answer in full, or in pieces, as the request asks for."""
    asked = json.dumps(request.get("messages") or request.get("input"))
    word = next((each for each in MESSAGES if each in asked), "")
    if not word:
        return "Well."
    if "input" in request:
        whole = {
            "id": "resp_1",
            "object": "response",
            "created_at": 0,
            "status": "completed",
            "model": "m",
            "output": OUTPUTS[word],
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
        }
        done = {"type": "response.completed", "sequence_number": 0, "response": whole}
        event = f"event: response.completed\ndata: {json.dumps(done)}\n\n"
        return Reply(body=event if request.get("stream") else json.dumps(whole))
    base = {"id": "c1", "created": 0, "model": "m"}
    message = {"role": "assistant", **MESSAGES[word]}
    if not request.get("stream"):
        choice = {"index": 0, "finish_reason": "stop", "message": message}
        return Reply(body=json.dumps({**base, "object": "chat.completion", "choices": [choice]}))
    deltas = [{"role": "assistant"}]
    for key, value in MESSAGES[word].items():
        pieces = [value[:3], value[3:]] if isinstance(value, str) else [value] if value else []
        deltas += [{key: piece} for piece in pieces]
    choices = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
    choices.append({"index": 0, "delta": {}, "finish_reason": "stop"})
    chunks = [{**base, "object": "chat.completion.chunk", "choices": [each]} for each in choices]
    told = [*map(json.dumps, chunks), "[DONE]"]
    return Reply(body="".join(f"data: {each}\n\n" for each in told))


@pytest.fixture
def extras() -> Iterator[ScriptedLLM]:
    """A server whose answers are more than texts."""
    with ScriptedLLM(script) as serving:
        yield serving


def chat(options: dict[str, Any], word: str) -> Any:
    """Return the whole message, as the client reads it."""
    answer = openai.OpenAI(**options).chat.completions.create(**_request(word))
    return answer.choices[0].message.model_dump(exclude_none=True)


def chat_async(options: dict[str, Any], word: str) -> Any:
    """Likewise by the asynchronous client."""

    async def ask() -> Any:
        async with openai.AsyncOpenAI(**options) as client:
            answer = await client.chat.completions.create(**_request(word))
            return answer.choices[0].message.model_dump(exclude_none=True)

    return asyncio.run(ask())


def chat_streamed(options: dict[str, Any], word: str) -> Any:
    """Return the fields of all pieces, put together."""
    pieces = openai.OpenAI(**options).chat.completions.create(**_request(word), stream=True)
    return _together(piece.choices[0].delta.model_dump(exclude_none=True) for piece in pieces)


def chat_streamed_async(options: dict[str, Any], word: str) -> Any:
    """Likewise by the asynchronous client."""

    async def ask() -> Any:
        async with openai.AsyncOpenAI(**options) as client:
            pieces = await client.chat.completions.create(**_request(word), stream=True)
            deltas = [each.choices[0].delta.model_dump(exclude_none=True) async for each in pieces]
            return _together(deltas)

    return asyncio.run(ask())


def responses(options: dict[str, Any], word: str) -> Any:
    """Return the output, and the answer to a request that has it as part of its input."""
    client = openai.OpenAI(**options)
    first = client.responses.create(model="m", input=word)
    output = [item.model_dump(exclude_none=True, mode="json") for item in first.output]
    again: Any = [{"role": "user", "content": "Go on"}, *output]
    return output, client.responses.create(model="m", input=again).output_text


def responses_async(options: dict[str, Any], word: str) -> Any:
    """Return the output by the asynchronous client."""

    async def ask() -> Any:
        async with openai.AsyncOpenAI(**options) as client:
            return _output(await client.responses.create(model="m", input=word))

    return asyncio.run(ask())


def responses_streamed(options: dict[str, Any], word: str) -> Any:
    """Return the output of the last event."""
    events = list(openai.OpenAI(**options).responses.create(model="m", input=word, stream=True))
    return _output(events[-1].response)


def responses_streamed_async(options: dict[str, Any], word: str) -> Any:
    """Likewise by the asynchronous client."""

    async def ask() -> Any:
        async with openai.AsyncOpenAI(**options) as client:
            events = await client.responses.create(model="m", input=word, stream=True)
            return _output([event async for event in events][-1].response)

    return asyncio.run(ask())


WAYS: list[Callable[[dict[str, Any], str], Any]] = [
    *(chat, chat_async, chat_streamed, chat_streamed_async),
    *((responses, responses_async) if HAS_RESPONSES else ()),
    *((responses_streamed, responses_streamed_async) if HAS_RESPONSES else ()),
]


@pytest.mark.parametrize("way", WAYS)
def test_a_program_that_reads_extras_replays_identically(
    extras: ScriptedLLM, options: dict[str, Any], way: Callable[[dict[str, Any], str], Any]
) -> None:
    """The client returns equal values, field by field, and the record is the same again."""
    options = {**options, "base_url": extras.url}

    def program() -> list[Any]:
        with mast_trace.run("work"), mast_trace.agent("worker"):
            told = [way(options, word) for word in MESSAGES]
            way(options, "a plain answer, whose ids are others")
        return told

    with capture_spans(["openai"]) as captured:
        first = program()
    asked = len(extras.requests)
    with replayed(captured.trajectory(), frameworks=["openai"]) as replay:
        second = program()
    assert second == first
    replay.assert_identical()
    assert len(extras.requests) == asked
    kept = [span.attributes.get(semconv.RESPONSE_EXTRA) for span in captured.records]
    assert sum(each is not None for each in kept) == len(MESSAGES)


@pytest.mark.skipif(not HAS_RESPONSES, reason="this version has no Responses")
def test_a_stream_of_responses_is_complete(extras: ScriptedLLM, options: dict[str, Any]) -> None:
    """The client's own helper assembles a replayed stream from its pieces."""
    options = {**options, "base_url": extras.url}

    def whole(word: str) -> Any:
        with mast_trace.run("work"), mast_trace.agent("worker"):
            return _output(openai.OpenAI(**options).responses.create(model="m", input=word))

    for word in OUTPUTS:
        with capture_spans(["openai"]) as captured:
            first = whole(word)
        with (
            replayed(captured.trajectory(), frameworks=["openai"]),
            mast_trace.run("work"),
            mast_trace.agent("worker"),
            openai.OpenAI(**options).responses.stream(model="m", input=word) as stream,
        ):
            kinds = [event.type for event in stream]
            found = stream.get_final_response()
        assert "".join(_texts(_output(found))) == "".join(_texts(first))
        assert kinds[0] == "response.created"
        assert kinds[-1] == "response.completed"


@pytest.mark.parametrize("capture", [True, False])
def test_extras_are_content(
    extras: ScriptedLLM,
    options: dict[str, Any],
    capture: bool,
) -> None:
    """They are redacted text by text, and absent where content is not captured."""
    options = {**options, "base_url": extras.url}

    def hidden(text: str) -> str:
        return text.replace("The list", "[hidden]")

    with (
        capture_spans(["openai"], capture_content=capture, redact=hidden) as captured,
        mast_trace.run("work"),
        mast_trace.agent("worker"),
    ):
        chat(options, "think")
    (kept,) = [
        span.attributes.get(semconv.RESPONSE_EXTRA)
        for span in captured.records
        if span.operation == semconv.CHAT
    ]
    expected = {"message": {"reasoning_content": "[hidden] says 79, so it is 79."}}
    assert (json.loads(kept) if capture else kept) == (expected if capture else None)


def _request(word: str) -> dict[str, Any]:
    return {"model": "m", "messages": [{"role": "user", "content": word}]}


def _output(response: Any) -> list[dict[str, Any]]:
    return [item.model_dump(exclude_none=True, mode="json") for item in response.output]


def _texts(output: list[dict[str, Any]]) -> Iterator[str]:
    for item in output:
        for part in item.get("content") or ():
            yield part.get("text") or part.get("refusal") or ""


def _together(deltas: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for delta in deltas:
        for key, value in delta.items():
            found[key] = found[key] + value if key in found and key != "role" else value
    return {key: value for key, value in found.items() if value != ""}
