# ruff: noqa: RUF012  # the contract annotates its attributes
"""The OpenAI client keeps the facts of every client."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import openai_ways
import pytest
from contract.replays import ReplayedClientContract
from scripted_llm import ScriptedLLM

from mast_trace import semconv
from mast_trace_instrumentations.openai import OpenAIInstrumentor

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

pytestmark = pytest.mark.framework("openai")

ASKED = [len(json.dumps(message)) for message in openai_ways.messages()]


class TestContract(ReplayedClientContract):
    """Chat Completions and Responses, whole, raw and streamed."""

    instrumentor = OpenAIInstrumentor
    ways = openai_ways.WAYS
    tell = staticmethod(openai_ways.tell)
    atell = staticmethod(openai_ways.atell)
    peer_ways = ("chat", "chat stream")
    tokens = sum(ASKED) // 4 + 1
    about = {
        semconv.REQUEST_MODEL: "scripted",
        semconv.PROVIDER_NAME: "openai",
        semconv.FINISH_REASONS: ("stop",),
    }
    extras = tuple(openai_ways.MESSAGES)
    peers = tuple(
        (f"{tool}.instrumentation.openai", "OpenAIInstrumentor")
        for tool in ("openinference", "opentelemetry")
    )
    serving = staticmethod(ScriptedLLM)

    def expected(self, way: str) -> Mapping[str, Any]:
        expected = {**super().expected(way), semconv.RESPONSE_ID: "chatcmpl-1"}
        if "responses" in way:
            own = {semconv.RESPONSE_ID: "resp_1", semconv.INPUT_TOKENS: ASKED[1] // 4 + 1}
            return {**expected, **own}
        return expected

    def results(self, way: str, told: Sequence[tuple[str, str]]) -> Sequence[Any]:
        if "responses" not in way:
            return super().results(way, told)
        return [
            {"type": "function_call_output", "call_id": name, "output": text} for name, text in told
        ]
