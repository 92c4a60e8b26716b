# ruff: noqa: RUF012  # the contract annotates its attributes
"""The Google Gen AI client keeps the facts of every client."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("google.genai", reason="needs the Google Gen AI client")

from contract.clients import ClientContract, Told, both_clients
from google import genai
from recorded_calls import a_run, answers
from scripted_protocols.gemini import THOUGHTS, Gemini, as_chat
from scripted_protocols.server import ScriptedProvider, size_of

from mast_trace import semconv
from mast_trace_instrumentations.google_genai import GoogleGenAIInstrumentor

if TYPE_CHECKING:
    from collections.abc import Callable

    Call = Callable[..., Any]

pytestmark = pytest.mark.framework("google_genai")


def tell(options: dict[str, Any], way: str, text: str = "Hello", **config: Any) -> Told:
    """Make a call, alone or in a chat; return the text of the answer as the program sees it."""
    client = genai.Client(**options)
    asked = {"model": "scripted", "config": {"system_instruction": "Be brief.", **config}}
    if "chat" in way:
        talk = client.chats.create(**asked)
        if "stream" in way:
            return Told("".join(piece.text or "" for piece in talk.send_message_stream(text)))
        return Told(talk.send_message(text).text or "")
    if "stream" in way:
        pieces = client.models.generate_content_stream(**asked, contents=text)
        return Told("".join(piece.text or "" for piece in pieces))
    return Told(client.models.generate_content(**asked, contents=text).text or "")


async def atell(options: dict[str, Any], way: str, text: str = "Hello", **config: Any) -> Told:
    """Make the call asynchronously."""
    client = genai.Client(**options).aio
    asked = {"model": "scripted", "config": {"system_instruction": "Be brief.", **config}}
    if "chat" in way:
        talk = client.chats.create(**asked)
        if "stream" in way:
            pieces = await talk.send_message_stream(text)
            return Told("".join([piece.text or "" async for piece in pieces]))
        return Told((await talk.send_message(text)).text or "")
    if "stream" in way:
        pieces = await client.models.generate_content_stream(**asked, contents=text)
        return Told("".join([piece.text or "" async for piece in pieces]))
    return Told((await client.models.generate_content(**asked, contents=text)).text or "")


def look_up(key: str) -> str:
    """Look a number up."""
    return f"42 {key}"


def fail(key: str) -> int:
    """Find nothing."""
    raise LookupError(f"no {key} here")


# Older versions do not know annotations that are texts.
look_up.__annotations__ = fail.__annotations__ = {"key": str, "return": str}


class TestContract(ClientContract):
    """Whole or streamed, alone or in a chat."""

    instrumentor = GoogleGenAIInstrumentor
    ways = ("whole", "stream", "chat", "chat stream")
    tell = staticmethod(tell)
    atell = staticmethod(atell)
    tokens = size_of([{"parts": [{"text": "Hello"}], "role": "user"}])
    about = {
        semconv.REQUEST_MODEL: "scripted",
        semconv.RESPONSE_MODEL: "scripted-1",
        semconv.RESPONSE_ID: "response_1",
        semconv.PROVIDER_NAME: "gcp.gemini",
        semconv.FINISH_REASONS: ("STOP",),
    }
    errors = {"refuse": "ClientError", "break": "ServerError"}
    reset_ways = ("stream", "chat stream")
    talk_ways = ("whole", "stream")
    thinks = True
    has_ids = False
    peer_ways = ("whole", "stream")
    peers = (("openinference.instrumentation.google_genai", "GoogleGenAIInstrumentor"),)
    received = staticmethod(as_chat)

    def serving(self, script: Callable[[dict[str, Any]], Any]) -> ScriptedProvider:
        return ScriptedProvider(Gemini(), script)

    def options_of(self, url: str) -> dict[str, Any]:
        return {**self.options, "http_options": {"base_url": url}}

    async def converse(
        self, options: dict[str, Any], way: str, use: Callable[..., str], asynchronous: bool
    ) -> None:
        """Let the client execute the functions, and send its own history each time."""
        del use
        asked = (options, way, "How much is it?")
        if asynchronous:
            await atell(*asked, tools=[look_up])
        else:
            tell(*asked, tools=[look_up])

    @both_clients
    def test_tokens_of_caches_and_thoughts(
        self, way: str, asynchronous: bool, call: Call, recorded: Any
    ) -> None:
        """Cached tokens are among the input, those of thoughts among the output."""
        with a_run(recorded):
            call(self.asking(asynchronous), self.options, way, "use the cache")
            call(self.asking(asynchronous), self.options, way, "think")
        cached, thought = [span.attributes for span in recorded.named(semconv.CHAT)]
        assert cached[semconv.CACHED_INPUT_TOKENS] == 100
        assert cached[semconv.INPUT_TOKENS] > 100
        assert semconv.CACHED_INPUT_TOKENS not in thought
        parts = [{"text": "First this, then that.", "thought": True}, {"text": "Thought."}]
        assert thought[semconv.OUTPUT_TOKENS] == size_of(parts) + THOUGHTS
        assert answers(recorded) == ["Cached.", "Thought."]

    @pytest.mark.parametrize("inside", [True, False], ids=["in a run", "outside"])
    @both_clients
    def test_functions_that_the_client_executes(
        self, way: str, asynchronous: bool, inside: bool, call: Call, recorded: Any
    ) -> None:
        """Two calls of the model and the executions between them, one of which fails."""

        async def work() -> str:
            asked = (self.options, way, "Use both")
            more = {"tools": [look_up, fail]}
            return (await atell(*asked, **more) if asynchronous else tell(*asked, **more)).text

        if not inside:
            assert call(work) == "It is 42."
            assert recorded.counts() == {"chat": 2}
            return
        with a_run(recorded):
            assert call(work) == "It is 42."
        assert len(self.server.requests) == 2
        counts = {"invoke_workflow": 1, "invoke_agent": 1, "chat": 2, "execute_tool": 2}
        assert recorded.counts() == counts
        found, failed = [span.attributes for span in recorded.named(semconv.EXECUTE_TOOL)]
        assert found["gen_ai.tool.name"] == "look_up"
        assert found["gen_ai.tool.call.arguments"] == '{"key": "x"}'
        assert found["gen_ai.tool.call.result"] == "42 x"
        assert found["gen_ai.agent.name"] == "worker"
        assert failed["gen_ai.tool.name"] == "fail"
        assert failed["error.type"] == "FunctionInvocationError"
        recorded.check_shape()
