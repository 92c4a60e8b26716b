"""Channels of one hub at the same time stay apart, and questions inside of a run are parts of it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("ag2.network", reason="needs AG2 1.x (`import ag2`)")

import ag2_programs as programs
from scripted_llm import ScriptedLLM

if TYPE_CHECKING:
    from recorded_spans import RecordedSpans

pytestmark = pytest.mark.framework("ag2")


async def test_three_channels_of_one_hub(spans: RecordedSpans) -> None:
    """Channels that the same agents hold at once are runs of their own."""
    with ScriptedLLM(lambda request: f"re {request['messages'][-1]['content']}") as server:
        async with programs.two(server.url) as (hub, (a, _b)):
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
