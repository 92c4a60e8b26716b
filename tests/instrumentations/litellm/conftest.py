"""LiteLLM against servers that speak OpenAI's and Anthropic's protocols, in a hand-made run."""

from __future__ import annotations

import gc
import os
from typing import TYPE_CHECKING, Any

import pytest
from recorded_calls import ANSWER
from recorded_spans import RecordedSpans
from scripted_llm import Call, Reply, ScriptedLLM, last_text
from scripted_protocols.anthropic_messages import AnthropicMessages
from scripted_protocols.server import ScriptedAnswer, ScriptedProvider

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # it would ask the network for prices
from mast_trace_instrumentations.litellm import LiteLLMInstrumentor

if TYPE_CHECKING:
    from collections.abc import Iterator


def answer(asked: str) -> ScriptedAnswer | Reply | str:
    """Answer, call a tool, or fail, as the last message asks for."""
    if "tool" in asked:
        return Reply("Let me see.", calls=(Call("look_up", {"key": "x"}, "t1"),))
    if "cache" in asked:
        return ScriptedAnswer("Cached.", cached=100, stored=20)
    if "refuse" in asked:
        return Reply("scripted failure", status=400)
    if "reset" in asked:
        return ScriptedAnswer(ANSWER, reset_after=5)
    return ANSWER


@pytest.fixture(autouse=True)
def _streams_end_here() -> Iterator[None]:
    """Collect the streams that LiteLLM 1.74 leaves open, which are part of cycles.

    One that is collected while httpcore holds its pool's lock waits for that lock for ever.
    """
    yield
    gc.collect()


@pytest.fixture
def recorded() -> Iterator[RecordedSpans]:
    """The spans of the test."""
    spans = RecordedSpans.of(LiteLLMInstrumentor())
    yield spans
    spans.instrumentor.uninstrument()


@pytest.fixture
def chat_server() -> Iterator[ScriptedLLM]:
    """OpenAI's protocol, which LiteLLM speaks through OpenAI's client."""
    with ScriptedLLM(lambda request: answer(last_text(request))) as serving:
        yield serving


@pytest.fixture
def native_server() -> Iterator[ScriptedProvider]:
    """Anthropic's protocol, which LiteLLM speaks by itself."""
    with ScriptedProvider(
        AnthropicMessages(), lambda request: answer(str(request["messages"][-1]["content"]))
    ) as serving:
        yield serving


@pytest.fixture
def routes(chat_server: ScriptedLLM, native_server: ScriptedProvider) -> dict[str, dict[str, Any]]:
    """The arguments that lead to each server."""
    key = {"api_key": "scripted"}
    claude = "anthropic/claude-sonnet-4-5-20250929"
    return {
        "openai": {"model": "openai/gpt-4o", "api_base": chat_server.url, **key},
        "anthropic": {"model": claude, "api_base": native_server.url, **key},
    }
