# the contract annotates its attributes
"""The OpenAI client keeps the facts of every client."""

from __future__ import annotations

import json
from typing import Any

import openai
import pytest
from contract.clients import ClientContract

from mast_trace_instrumentations.openai import OpenAIInstrumentor

pytestmark = pytest.mark.framework("openai")

HAS_RESPONSES = "responses" in dir(openai.OpenAI(api_key="x"))
STREAM: dict[str, Any] = {"stream": True, "stream_options": {"include_usage": True}}


def _chat(text: str, way: str) -> dict[str, Any]:
    asked = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": text}]
    return {"model": "scripted", "messages": asked, **(STREAM if "stream" in way else {})}


def _responses(text: str, way: str) -> dict[str, Any]:
    told = {"instructions": "Be brief.", "input": text}
    return {"model": "scripted", **told, **({"stream": True} if "stream" in way else {})}


def _joined(pieces: list[Any]) -> str:
    return "".join(piece.choices[0].delta.content or "" for piece in pieces if piece.choices)


def ask(options: dict[str, Any], way: str, text: str = "Hello") -> str:
    with openai.OpenAI(**options) as client:
        if "responses" in way:
            answer = client.responses.create(**_responses(text, way))
            return (list(answer)[-1].response if "stream" in way else answer).output_text
        answer = client.chat.completions.create(**_chat(text, way))
        return _joined(list(answer)) if "stream" in way else answer.choices[0].message.content


async def aask(options: dict[str, Any], way: str, text: str = "Hello") -> str:
    async with openai.AsyncOpenAI(**options) as client:
        if "responses" in way:
            answer = await client.responses.create(**_responses(text, way))
            if "stream" in way:
                answer = [event async for event in answer][-1].response
            return answer.output_text
        answer = await client.chat.completions.create(**_chat(text, way))
        if "stream" in way:
            return _joined([piece async for piece in answer])
        return answer.choices[0].message.content


class TestContract(ClientContract):
    """Chat Completions and Responses, whole and streamed."""

    instrumentor = OpenAIInstrumentor
    ways = ("chat", "chat stream", *(("responses", "responses stream") if HAS_RESPONSES else ()))
    ask = staticmethod(ask)
    aask = staticmethod(aask)
    peer_ways = ("chat", "chat stream")
    tokens = sum(len(json.dumps(message)) for message in _chat("Hello", "")["messages"]) // 4 + 1
    peers = tuple(
        (f"{tool}.instrumentation.openai", "OpenAIInstrumentor")
        for tool in ("openinference", "opentelemetry")
    )
