"""Teams of LangGraph are replayed in each way of running them, whatever the way of the recording."""

from __future__ import annotations

import asyncio
import builtins
import json
from typing import TYPE_CHECKING, Any

import pytest

agents = pytest.importorskip("langchain.agents", reason="needs LangChain 1")
if not hasattr(agents, "create_agent"):
    pytest.skip("needs LangChain 1", allow_module_level=True)
pytest.importorskip("langgraph_swarm")
pytest.importorskip("langgraph_supervisor")

import langgraph_programs as programs
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import MemorySaver
from langgraph.graph import MessagesState
from langgraph.types import Command, interrupt
from scripted_llm import ScriptedLLM

from mast_trace.testing import capture_spans, replayed
from mast_trace.trajectory import to_dict

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

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


def test_an_interrupted_graph_and_its_continuation_in_a_test(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file with both runs answers both; what the person typed is typed again."""

    def run(url: str) -> str:
        model = ChatOpenAI(model="m", base_url=url, api_key="scripted", max_retries=0)

        def write(state: MessagesState) -> dict[str, Any]:
            return {"messages": [model.invoke(state["messages"])]}

        def review(_state: MessagesState) -> dict[str, Any]:
            return {"messages": [("user", interrupt("Is this right?"))]}

        graph = programs.chain(MessagesState, write=write, review=review, finish=write)
        compiled = graph.compile(checkpointer=MemorySaver(), name="writers")
        thread: Any = {"configurable": {"thread_id": "1"}}
        compiled.invoke(ASKED, thread)
        answered = compiled.invoke(Command(resume=input("Is this right? ")), thread)
        return str(answered["messages"][-1].content)

    with ScriptedLLM(lambda request: f"Answer {len(request['messages'])}") as server:
        monkeypatch.setattr(builtins, "input", lambda _prompt: "Shorter.")
        with capture_spans(["langgraph", "openai"]) as captured:
            said = run(server.url)
        runs = captured.trajectories()
        assert runs[1].human_inputs == ("Shorter.",)
        file = tmp_path / "both.jsonl"
        file.write_text("\n".join(json.dumps(to_dict(each)) for each in runs), "utf-8")
        asked = len(server.requests)
        monkeypatch.setattr(builtins, "input", lambda _prompt: "Longer.")
        with replayed(file, frameworks=["langgraph", "openai"]) as replay:
            assert run(server.url) == said
        replay.assert_identical()
        assert len(server.requests) == asked
    assert input("?") == "Longer."  # the program's own again
