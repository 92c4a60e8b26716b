"""The ways to ask by the OpenAI client, and its scripted model."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import openai
from contract.clients import Told
from recorded_calls import ANSWER
from scripted_llm import Call, Reply, last_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

HAS_RESPONSES = "responses" in dir(openai.OpenAI(api_key="x"))
RESPONSES = ("responses", "responses stream") if HAS_RESPONSES else ()
WAYS = ("chat", "chat raw", "chat stream", *RESPONSES)

CITED = {
    "type": "url_citation",
    "url_citation": {"start_index": 0, "end_index": 5, "title": "Fares", "url": "https://x.org/f"},
}
MESSAGES: dict[str, dict[str, Any]] = {
    "cite": {"content": "It is 79.", "annotations": [CITED]},
    "decline": {"content": None, "refusal": "I will not."},
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
    "decline": [{**SAID, "id": "m2", "content": [{"type": "refusal", "refusal": "I will not."}]}],
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
    """Answer, call a tool, fail, or give more than a text, as the last message asks for."""
    asked = last_text(request)
    word = next((each for each in MESSAGES if each in asked), "")
    if "tool" in asked:
        return Reply("Let me see.", calls=(Call("look_up", {"key": "x"}, id="call_1"),))
    if "refuse" in asked or "break" in asked:
        return Reply("scripted failure", status=400 if "refuse" in asked else 500)
    if not word:
        return ANSWER
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


def tell(
    options: dict[str, Any], way: str, text: str = "Hello", history: Sequence[Any] = ()
) -> Told:
    """Ask, and read the answer."""
    with openai.OpenAI(**options) as client:
        create, asked = _call(client, way, text, history)
        answer = create(**asked)
        return _read(way, list(answer) if "stream" in way else answer)


async def atell(
    options: dict[str, Any], way: str, text: str = "Hello", history: Sequence[Any] = ()
) -> Told:
    """Ask by the asynchronous client."""
    async with openai.AsyncOpenAI(**options) as client:
        create, asked = _call(client, way, text, history)
        answer = await create(**asked)
        return _read(way, [piece async for piece in answer] if "stream" in way else answer)


def messages(text: str = "Hello", history: Sequence[Any] = ()) -> list[Any]:
    """A request of Chat Completions."""
    return [
        {"role": "system", "content": "Be brief."},
        *(history or [{"role": "user", "content": text}]),
    ]


def _call(client: Any, way: str, text: str, history: Sequence[Any]) -> tuple[Any, dict[str, Any]]:
    stream = {"stream": True} if "stream" in way else {}
    if "responses" in way:
        told = {"instructions": "Be brief.", "input": list(history) or text}
        return client.responses.create, {"model": "scripted", **told, **stream}
    chat = client.chat.completions
    counted = {"stream_options": {"include_usage": True}} if stream else {}
    asked = {"model": "scripted", "messages": messages(text, history), **stream, **counted}
    return (chat.with_raw_response if "raw" in way else chat).create, asked


def _read(way: str, answer: Any) -> Told:
    if "responses" in way:
        whole = answer[-1].response if "stream" in way else answer
        items = output(whole)
        calls = [
            (item["call_id"], item["name"], json.loads(item["arguments"]))
            for item in items
            if item["type"] == "function_call"
        ]
        return Told(whole.output_text, calls, whole.status, items)
    if "stream" in way:
        choices = [piece.choices[0] for piece in answer if piece.choices]
        message = together(choice.delta.model_dump(exclude_none=True) for choice in choices)
        finish = next(each.finish_reason for each in reversed(choices) if each.finish_reason)
    else:
        choice = (answer.parse() if "raw" in way else answer).choices[0]
        message, finish = choice.message.model_dump(exclude_none=True), choice.finish_reason
    calls = [
        (call["id"], call["function"]["name"], json.loads(call["function"]["arguments"]))
        for call in message.get("tool_calls") or ()
    ]
    return Told(message.get("content") or "", calls, finish, [{"role": "assistant", **message}])


def output(response: Any) -> list[dict[str, Any]]:
    """Return the items of a response, as a program sends them back."""
    return [item.model_dump(exclude_none=True, mode="json") for item in response.output]


def together(deltas: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Put the fields of a streamed message together."""
    found: dict[str, Any] = {}
    for delta in deltas:
        for call in delta.get("tool_calls", ()):
            del call["index"]
        for key, value in delta.items():
            found[key] = found[key] + value if key in found and key != "role" else value
    return {key: value for key, value in found.items() if value != ""}
