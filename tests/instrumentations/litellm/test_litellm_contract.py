# ruff: noqa: RUF012  # the contract annotates its attributes
"""LiteLLM keeps the facts of every client."""

from __future__ import annotations

import json
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import pytest

litellm = pytest.importorskip("litellm", reason="needs LiteLLM")

import litellm_ways
from contract.clients import ClientContract, a_run, answers, both_clients
from recorded_calls import ANSWER
from scripted_protocols.anthropic_messages import FRESH, AnthropicMessages, as_chat
from scripted_protocols.server import ScriptedProvider

from mast_trace import semconv
from mast_trace_instrumentations.litellm import LiteLLMInstrumentor

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Call = Callable[..., Any]

pytestmark = pytest.mark.framework("litellm")

QUIET = version("litellm").startswith("1.74.")
"""True if the asynchronous client takes a reset connection for the end of a stream."""
ASKED = sum(len(json.dumps(message)) for message in litellm_ways.asking()) // 4 + 1


class TestContract(ClientContract):
    """Whole and streamed, through OpenAI's client and by itself."""

    instrumentor = LiteLLMInstrumentor
    ways = litellm_ways.WAYS
    tell = staticmethod(litellm_ways.tell)
    atell = staticmethod(litellm_ways.atell)
    tokens = FRESH
    about = {semconv.FRAMEWORK: "litellm", semconv.FINISH_REASONS: ("stop",)}
    errors = {"refuse": "BadRequestError"}
    reset_ways = ("anthropic stream",)
    before_reset = (ANSWER[:16], ANSWER[:32])
    talk_ways = ("anthropic", "anthropic stream")
    peer_ways = ("anthropic", "anthropic stream")
    peers = (("openinference.instrumentation.litellm", "LiteLLMInstrumentor"),)
    received = staticmethod(as_chat)

    def serving(self, script: Callable[[dict[str, Any]], Any]) -> ScriptedProvider:
        return ScriptedProvider(AnthropicMessages(), script)

    def options_of(self, url: str) -> dict[str, Any]:
        return {"anthropic": {**self.options["anthropic"], "api_base": url}}

    def expected(self, way: str) -> Mapping[str, Any]:
        """Return the provider's tokens; LiteLLM's estimates for streams of others are not recorded."""
        route = way.split(maxsplit=1)[0]
        model = self.options[route]["model"]
        more: dict[str, Any] = {semconv.REQUEST_MODEL: model, semconv.PROVIDER_NAME: route}
        if route == "openai":
            more[semconv.INPUT_TOKENS] = None if "stream" in way else ASKED
        return {**super().expected(way), **more}

    @both_clients
    def test_a_connection_that_is_reset(
        self, reset_way: str, asynchronous: bool, call: Call, recorded: Any
    ) -> None:
        if not (asynchronous and QUIET):
            super().test_a_connection_that_is_reset(reset_way, asynchronous, call, recorded)
            return
        with a_run(recorded):
            call(self.asking(asynchronous), self.options, reset_way, "reset")
        assert answers(recorded)[0] in self.before_reset

    @pytest.mark.usefixtures("clients")
    @both_clients
    def test_request_answer_and_usage_are_on_the_span(
        self, way: str, asynchronous: bool, call: Call, recorded: Any
    ) -> None:
        """The clients below are recorded as well, and silent."""
        super().test_request_answer_and_usage_are_on_the_span(way, asynchronous, call, recorded)
