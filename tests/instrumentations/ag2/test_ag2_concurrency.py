"""Runs at the same time stay apart: in one loop, in threads, and as channels of one hub."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("ag2.network", reason="needs AG2 1.x (`import ag2`)")

import ag2_programs as programs
from scripted_llm import ScriptedLLM

from mast_trace import semconv

if TYPE_CHECKING:
    from recorded_spans import RecordedSpans

pytestmark = pytest.mark.framework("ag2")

_ONE_WORKFLOW = {
    "invoke_workflow": 1,
    "send_message": 4,
    "invoke_agent": 3,
    "chat": 6,
    "execute_tool": 3,
}


def shape(spans: RecordedSpans) -> list[dict[str, int]]:
    """The number of spans of each operation, for each trace."""
    return [
        {
            operation: sum(s.attributes[semconv.OPERATION_NAME] == operation for s in trace)
            for operation in _ONE_WORKFLOW
        }
        for trace in spans.traces().values()
    ]


async def test_three_channels_of_one_hub(spans: RecordedSpans) -> None:
    """Channels that the same agents hold at once are runs of their own."""
    with ScriptedLLM(lambda request: f"re {request['messages'][-1]['content']}") as server:
        alice, bob = programs.person("alice", server.url), programs.person("bob", server.url)
        async with programs.network(alice, bob) as (hub, (a, _b)):
            channels = [await a.open(type="consulting", target="bob") for _ in range(3)]
            for number, channel in enumerate(channels):
                await channel.send(f"question {number}")
            await asyncio.gather(*(programs.closed(hub, c.channel_id) for c in channels))
    spans.check_shape(runs=3)
    spoken = sorted(
        tuple(step.text for step in run.steps if step.kind.value == "message")
        for run in spans.trajectories()
    )
    assert spoken == [(f"question {n}", f"re question {n}") for n in range(3)]


async def test_lone_agents_at_once(spans: RecordedSpans) -> None:
    """Agents asked at once outside of any run make a run each, with their own tools in it."""
    with ScriptedLLM(programs.tools_script) as server:
        await asyncio.gather(*(programs.tools(server.url) for _ in range(3)))
    spans.check_shape(runs=3)
    assert [counts["execute_tool"] for counts in shape(spans)] == [4, 4, 4]


async def test_agents_inside_a_given_run_are_parts_of_it(spans: RecordedSpans) -> None:
    """Two questions inside one run of the program's own are one trace."""
    run = spans.instrumentor.telemetry.run("both")
    with ScriptedLLM(programs.tools_script) as server, run.attached():
        await programs.tools(server.url)
        await programs.tools(server.url)
    run.finish("completed")
    spans.check_shape()
    assert [spans.parent(s).name for s in spans.named("invoke_agent")] == [
        "invoke_workflow both"
    ] * 2
