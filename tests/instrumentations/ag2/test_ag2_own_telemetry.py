"""AG2's own telemetry and ours at the same time: nothing is recorded twice, nothing is orphaned."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("ag2.network", reason="needs AG2 1.x (`import ag2`)")

import ag2_programs as programs
from ag2 import Agent
from ag2.middleware.builtin.telemetry import TelemetryMiddleware
from scripted_llm import ScriptedLLM

from mast_trace import semconv

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from recorded_spans import RecordedSpans

pytestmark = pytest.mark.framework("ag2")


def solver(url: str, provider: TracerProvider) -> Agent:
    """An agent that carries AG2's telemetry."""
    return Agent(
        "solver",
        prompt="Solve it.",
        config=programs.model(url),
        tools=[programs.add, programs.boom, programs.look_up],
        middleware=[TelemetryMiddleware(tracer_provider=provider, agent_name="solver")],
    )


async def test_with_one_provider_nothing_is_doubled(spans: RecordedSpans) -> None:
    """With one provider for both there is one span per turn, call and tool, and each token counts once."""
    with ScriptedLLM(programs.tools_script) as server:
        await solver(server.url, spans.provider).ask("What is 2 + 3?")
        usage = [_usage(server, n) for n in range(2)]
    spans.check_shape()
    assert spans.counts() == {
        "invoke_workflow": 1,
        "send_message": 2,
        "invoke_agent": 1,
        "chat": 2,
        "execute_tool": 4,
    }
    tokens = [s.attributes.get(semconv.INPUT_TOKENS) for s in spans.all]
    assert [t for t in tokens if t] == usage


def _usage(server: ScriptedLLM, number: int) -> int:
    """Input tokens as the server counts them."""
    return sum(len(json.dumps(m)) for m in server.requests[number]["messages"]) // 4 + 1


async def test_with_a_provider_of_its_own_it_goes_on(spans: RecordedSpans, elsewhere) -> None:
    """AG2's spans go where they went; ours are whole, and none hangs below one of AG2's."""
    provider, exporter = elsewhere
    with ScriptedLLM(programs.tools_script) as server:
        await solver(server.url, provider).ask("What is 2 + 3?")
    spans.check_shape()
    assert len(spans.named("chat")) == 2
    assert len(spans.named("execute_tool")) == 4
    own = [span.name for span in exporter.get_finished_spans()]
    assert own.count("chat scripted") == 2
    assert sum(name.startswith("execute_tool") for name in own) == 3  # it never sees unknown tools


async def test_a_hub_with_its_own_tracing(spans: RecordedSpans, elsewhere) -> None:
    """A hub that writes its own trace into envelopes keeps it there; our run is whole all the same."""
    from ag2.knowledge import MemoryKnowledgeStore
    from ag2.network import Hub

    provider, exporter = elsewhere
    with ScriptedLLM(lambda _request: "It is 5.") as server:
        hub = await Hub.open(
            MemoryKnowledgeStore(), expectation_sweep_interval=0, tracer_provider=provider
        )
        alice = await hub.register(programs.person("alice", server.url))
        await hub.register(programs.person("bob", server.url))
        channel = await alice.open(type="consulting", target="bob")
        await channel.send("What is 2 + 3?")
        await programs.closed(hub, channel.channel_id)
        carried = {e.trace_id for e in await hub.read_wal(channel.channel_id) if e.trace_id}
        await hub.close()
    spans.check_shape()
    assert len(spans.sent_messages()) == 2
    theirs = {f"{s.context.trace_id:032x}" for s in exporter.get_finished_spans()}
    assert {traceparent.split("-")[1] for traceparent in carried} <= theirs
