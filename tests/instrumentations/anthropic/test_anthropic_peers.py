"""The Anthropic client recorded by us and by others at the same time: each call counts once."""

from __future__ import annotations

from typing import Any

import pytest

anthropic = pytest.importorskip("anthropic", reason="needs the Anthropic client")

from client_peers import ORDERS, another_provider, both, check_counted_once, instrumentor
from recorded_calls import ANSWER, a_run
from test_anthropic_client import ask

pytestmark = pytest.mark.framework("anthropic")

MODULES = ("openinference.instrumentation.anthropic", "opentelemetry.instrumentation.anthropic")


@pytest.fixture(params=MODULES)
def theirs(request: pytest.FixtureRequest) -> Any:
    return instrumentor(request.param, "AnthropicInstrumentor")


@pytest.mark.parametrize("way", ["create", "stream", "helper"])
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("shared", [True, False], ids=["one provider", "two providers"])
def test_each_call_counts_once(recorded, options, theirs, order, shared, way) -> None:
    """One model call with its tokens, in our trace; theirs goes on as it would without us."""
    with another_provider() as (provider, exporter):
        used = (recorded.provider, recorded.exporter) if shared else (provider, exporter)
        with both(recorded, theirs, used[0], order), a_run(recorded):
            assert ask(options, way) == ANSWER
        check_counted_once(recorded, 7)
        own = [s for s in used[1].get_finished_spans() if "mast.framework" not in s.attributes]
        own = [s for s in own if s.instrumentation_scope.name != "com.anthropic.sdk.python"]
        assert len(own) == 1


@pytest.mark.parametrize("order", ORDERS)
def test_what_is_in_no_run_is_theirs_alone(recorded, options, theirs, order) -> None:
    with both(recorded, theirs, recorded.provider, order):
        ask(options, "create")
    assert [s.name for s in recorded.all if "mast.framework" in s.attributes] == []
    assert len(recorded.all) == 1


@pytest.mark.skipif(
    "open_telemetry" not in anthropic.Anthropic.__init__.__annotations__, reason="since 2.0"
)
@pytest.mark.parametrize("way", ["create", "stream", "helper"])
def test_the_clients_own_spans_are_copies_of_ours(recorded, options, way) -> None:
    """The client makes a span of each call, inside of ours, where the program has a provider."""
    own = {"open_telemetry": {"tracer_provider": recorded.provider}}
    with a_run(recorded):
        assert ask({**options, **own}, way) == ANSWER
    assert len(recorded.all) == 4
    check_counted_once(recorded, 7)
