# ruff: noqa: RUF012  # the contract annotates its attributes
"""The Anthropic client keeps the facts of every client."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

anthropic = pytest.importorskip("anthropic", reason="needs the Anthropic client")

import anthropic_ways
from client_peers import check_counted_once
from contract.replays import ReplayedClientContract
from recorded_calls import ANSWER, a_run, answers, chat
from scripted_protocols.anthropic_messages import FRESH, AnthropicMessages, as_chat
from scripted_protocols.server import ScriptedProvider

from mast_trace import semconv
from mast_trace_instrumentations.anthropic import AnthropicInstrumentor

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

pytestmark = pytest.mark.framework("anthropic")


class TestContract(ReplayedClientContract):
    """Whole, raw, as a stream and by the helper, of the stable interface and the beta one."""

    instrumentor = AnthropicInstrumentor
    ways = anthropic_ways.WAYS
    tell = staticmethod(anthropic_ways.tell)
    atell = staticmethod(anthropic_ways.atell)
    tokens = FRESH
    about = {
        semconv.REQUEST_MODEL: "scripted",
        semconv.RESPONSE_MODEL: "scripted-1",
        semconv.RESPONSE_ID: "msg_1",
        semconv.PROVIDER_NAME: "anthropic",
        semconv.FINISH_REASONS: ("end_turn",),
    }
    arguments = anthropic_ways.CALL.arguments
    reset_ways = ("stream", "helper", "beta stream", "beta helper")
    talk_ways = ("create", "helper")
    thinks = True
    replay_ways = ("create", "raw", "stream", "helper")
    extras = tuple(anthropic_ways.BLOCKS)
    peer_ways = ("create", "stream", "helper")
    peers = tuple(
        (f"{tool}.instrumentation.anthropic", "AnthropicInstrumentor")
        for tool in ("openinference", "opentelemetry")
    )
    own_scopes = ("com.anthropic.sdk.python",)
    apart = ("opentelemetry.instrumentation.anthropic",)
    received = staticmethod(as_chat)

    def serving(self, script: Callable[[dict[str, Any]], Any]) -> ScriptedProvider:
        return ScriptedProvider(AnthropicMessages(), script)

    def results(self, way: str, told: Sequence[tuple[str, str]]) -> Sequence[Any]:
        del way
        blocks = [{"type": "tool_result", "tool_use_id": n, "content": text} for n, text in told]
        return [{"role": "user", "content": blocks}]

    def test_input_tokens_are_all_tokens(self, way: str, recorded: Any) -> None:
        """The client counts what a cache has read or written apart; the conventions add it up."""
        with a_run(recorded):
            self.ask(self.options, way, "use the cache")
        about = chat(recorded)
        assert about[semconv.INPUT_TOKENS] == recorded.trajectory().input_tokens == 127
        assert about[semconv.CACHED_INPUT_TOKENS] == 100
        assert about[semconv.CACHE_WRITE_INPUT_TOKENS] == 20

    def test_thoughts_are_not_what_is_said(self, way: str, recorded: Any) -> None:
        """Thoughts count among the tokens."""
        with a_run(recorded):
            assert self.ask(self.options, way, "think") == "Thought."
        assert answers(recorded) == ["Thought."]

    @pytest.mark.skipif(
        "open_telemetry" not in anthropic.Anthropic.__init__.__annotations__, reason="since 2.0"
    )
    @pytest.mark.parametrize("asked", ["create", "stream", "helper"])
    def test_the_clients_own_spans_are_copies_of_ours(self, asked: str, recorded: Any) -> None:
        """The client makes a span of each call, inside of ours, where the program has a provider."""
        own = {"open_telemetry": {"tracer_provider": recorded.provider}}
        with a_run(recorded):
            assert self.ask({**self.options, **own}, asked) == ANSWER
        assert len(recorded.all) == 4
        check_counted_once(recorded, FRESH)
