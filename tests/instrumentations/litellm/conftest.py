"""LiteLLM against servers that speak OpenAI's and Anthropic's protocols, in a hand-made run."""

from __future__ import annotations

import gc
import os
from typing import TYPE_CHECKING, Any

import pytest
from recorded_calls import ANSWER
from recorded_spans import RecordedSpans, recorded_by
from scripted_llm import Call, Reply, ScriptedLLM, last_text
from scripted_protocols.anthropic_messages import AnthropicMessages
from scripted_protocols.server import ScriptedAnswer, ScriptedProvider

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # it would ask the network for prices
from mast_trace_instrumentations.anthropic import AnthropicInstrumentor
from mast_trace_instrumentations.litellm import LiteLLMInstrumentor
from mast_trace_instrumentations.openai import OpenAIInstrumentor

if TYPE_CHECKING:
    from collections.abc import Iterator

recorded = recorded_by(LiteLLMInstrumentor)


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
def clients(recorded: RecordedSpans) -> Iterator[None]:
    """Record the clients that LiteLLM may go through as well: they have to be silent."""
    below = [OpenAIInstrumentor(), AnthropicInstrumentor()]
    for each in below:
        each.instrument(tracer_provider=recorded.provider)
    yield
    for each in below:
        each.uninstrument()


@pytest.fixture
def server(chat_server: ScriptedLLM, native_server: ScriptedProvider) -> ScriptedLLM:
    """Both servers, with the requests of both."""
    native_server.requests = chat_server.requests
    return chat_server


@pytest.fixture
def options(routes: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """The same by the name of the contract."""
    return routes


@pytest.fixture
def routes(chat_server: ScriptedLLM, native_server: ScriptedProvider) -> dict[str, dict[str, Any]]:
    """The arguments that lead to each server."""
    key = {"api_key": "scripted"}
    claude = "anthropic/claude-sonnet-4-5-20250929"
    return {
        "openai": {"model": "openai/gpt-4o", "api_base": chat_server.url, **key},
        "anthropic": {"model": claude, "api_base": native_server.url, **key},
    }
