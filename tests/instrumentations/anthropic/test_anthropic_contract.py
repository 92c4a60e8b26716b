# the contract annotates its attributes
"""The Anthropic client keeps the facts of every client."""

from __future__ import annotations

from typing import Any

import pytest

anthropic = pytest.importorskip("anthropic", reason="needs the Anthropic client")

from client_peers import check_counted_once
from contract.clients import ClientContract
from recorded_calls import ANSWER, a_run
from test_anthropic_client import WAYS, aask, ask

from mast_trace_instrumentations.anthropic import AnthropicInstrumentor

pytestmark = pytest.mark.framework("anthropic")


class TestContract(ClientContract):
    """Whole, as a stream and by the helper, of the stable interface and the beta one."""

    instrumentor = AnthropicInstrumentor
    ways = WAYS
    peer_ways = ("create", "stream", "helper")
    ask = staticmethod(ask)
    aask = staticmethod(aask)
    tokens = 7
    peers = tuple(
        (f"{tool}.instrumentation.anthropic", "AnthropicInstrumentor")
        for tool in ("openinference", "opentelemetry")
    )
    own_scopes = ("com.anthropic.sdk.python",)

    @pytest.mark.skipif(
        "open_telemetry" not in anthropic.Anthropic.__init__.__annotations__, reason="since 2.0"
    )
    @pytest.mark.parametrize("asked", ["create", "stream", "helper"])
    def test_the_clients_own_spans_are_copies_of_ours(self, asked: str, recorded: Any) -> None:
        """The client makes a span of each call, inside of ours, where the program has a provider."""
        own = {"open_telemetry": {"tracer_provider": recorded.provider}}
        with a_run(recorded):
            assert ask({**self.options, **own}, asked) == ANSWER
        assert len(recorded.all) == 4
        check_counted_once(recorded, 7)
