"""Teams of LangGraph are replayed in each way of running them, whatever the way of the recording."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

agents = pytest.importorskip("langchain.agents", reason="needs LangChain 1")
if not hasattr(agents, "create_agent"):
    pytest.skip("needs LangChain 1", allow_module_level=True)
pytest.importorskip("langgraph_swarm")
pytest.importorskip("langgraph_supervisor")

import langgraph_programs as programs
from langchain_openai import ChatOpenAI
from scripted_llm import ScriptedLLM

from mast_trace.testing import capture_spans, replayed

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.framework("langgraph")

ASKED: dict[str, Any] = {"messages": [("user", programs.QUESTION)]}
TEAMS = {
    "swarm": (programs.swarm, programs.swarm_script),
    "supervisor": (programs.supervised, programs.arithmetic),
}


def invoked(graph: Any) -> None:
    graph.invoke(ASKED)


def streamed(graph: Any) -> None:
    list(graph.stream(ASKED, stream_mode="messages"))


def awaited(graph: Any) -> None:
    asyncio.run(graph.ainvoke(ASKED))


def asynchronously_streamed(graph: Any) -> None:
    async def collect() -> None:
        async for _ in graph.astream(ASKED, stream_mode="messages"):
            pass

    asyncio.run(collect())


@pytest.mark.parametrize("team", TEAMS)
def test_every_way_is_identical(team: str) -> None:
    """A run that was recorded whole answers all ways; one that was streamed answers a plain call."""
    build, script = TEAMS[team]

    def run(way: Callable[[Any], None], url: str) -> None:
        way(build(ChatOpenAI(model="m", base_url=url, api_key="scripted", max_retries=0)))

    with ScriptedLLM(script) as server:
        for recorded_way, replayed_ways in (
            (invoked, (invoked, streamed, awaited, asynchronously_streamed)),
            (asynchronously_streamed, (invoked,)),
        ):
            with capture_spans(["langgraph", "openai"]) as captured:
                run(recorded_way, server.url)
            asked = len(server.requests)
            for way in replayed_ways:
                with replayed(captured.trajectory(), frameworks=["langgraph", "openai"]) as replay:
                    run(way, server.url)
                replay.assert_identical()
                assert replay.report.live_executions == 0
            assert len(server.requests) == asked
