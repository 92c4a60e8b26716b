"""LangGraph keeps the facts of every framework."""

# ruff: noqa: RUF012  # the contracts annotate their attributes
from __future__ import annotations

import itertools
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("langgraph.graph", reason="needs LangGraph")
pytest.importorskip("langchain_openai", reason="needs langchain-openai")

import stock
from contract.examples import ExampleContract
from contract.frameworks import FrameworkContract, Program
from contract.planted import PlantedContract
from installed import installed
from langchain_core.tools import tool
from langchain_core.tracers.context import _configure_hooks
from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph_programs import (
    arithmetic,
    ask,
    calculator,
    linear,
    supervised,
    swarm,
    swarm_script,
    writers,
    writers_script,
)
from recorded_spans import recording
from scripted_llm import Call, Reply, messages_of, system_text

from mast_trace_instrumentations.langgraph import LangGraphInstrumentor

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

pytestmark = pytest.mark.framework("langgraph")

try:
    from langchain.agents import create_agent
except ImportError:
    create_agent = None
needs_langchain = pytest.mark.skipif(create_agent is None, reason="needs LangChain 1")
ROUNDS = 3


def model(url: str, **options: Any) -> ChatOpenAI:
    settings = {"model": "scripted", "api_key": "scripted", "max_retries": 0, **options}
    return ChatOpenAI(base_url=url, **settings)


def said(state: Any) -> list[tuple[str, Any]]:
    """The messages of a graph's last state, without ids."""
    return [(message.name, message.content) for message in state["messages"]]


def invoked(build: Any, **options: Any) -> Callable[[str], Any]:
    """Return a program that invokes a graph."""
    return lambda url: said(build(model(url, **options)).invoke(ask()))


def streamed(build: Any, **options: Any) -> Callable[[str], Any]:
    """Return a program that reads a graph's stream to its end."""

    def run(url: str) -> Any:
        graph = build(model(url, **options))
        return said(list(graph.stream(ask(), stream_mode=["messages", "values"]))[-1][1])

    return run


def awaited(build: Any, **options: Any) -> Callable[[str], Any]:
    async def run(url: str) -> Any:
        return said(await build(model(url, **options)).ainvoke(ask()))

    return run


def awaited_stream(build: Any, **options: Any) -> Callable[[str], Any]:
    async def run(url: str) -> Any:
        stream = build(model(url, **options)).astream(ask(), stream_mode=["messages", "values"])
        return said([chunk async for chunk in stream][-1][1])

    return run


WAYS = {"invoke": invoked, "stream": streamed, "ainvoke": awaited, "astream": awaited_stream}


def team(asking: ChatOpenAI) -> Any:
    return supervised(asking, name="team")


def counting(request: dict[str, Any]) -> Reply | str:
    """The mathematician makes two calls a round, with equal results; the boss hands over once."""
    kinds = [str(message.get("role") or message.get("type")) for message in messages_of(request)]
    if "boss" in system_text(request):
        handed = kinds.count("tool") + kinds.count("function_call_output")
        return "The team says 5." if handed else Reply(calls=(Call("transfer_to_math"),))
    rounds = str(messages_of(request)).count('"a": 2') + str(messages_of(request)).count('\\"a\\"')
    if rounds >= 2 * ROUNDS:
        return "2 + 3 is 5"
    add = Call("add", {"a": 2, "b": 3})
    return Reply("Let me see." if rounds else "", calls=(add, add))


def apart(peer: str, order: str, *, shared: bool) -> None:
    """Compare a run with and without others' spans, in a process of its own."""
    with recording(LangGraphInstrumentor()) as recorded:
        contract = TestContract()
        contract.check_with_theirs(peer, shared, order, lambda f, *args: f(*args), recorded)


class TestContract(FrameworkContract):
    """A supervisor over a mathematician with a tool."""

    instrumentor = LangGraphInstrumentor
    main = Program(invoked(team), arithmetic)
    awaited = staticmethod(awaited(team))
    ways = {
        f"{way}, {'streaming' if streaming else 'whole'}": make(team, streaming=streaming)
        for way, make in WAYS.items()
        for streaming in (False, True)
    }
    others = {
        "swarm": Program(invoked(swarm), swarm_script),
        "writers": Program(invoked(writers), writers_script),
        "agent": Program(invoked(calculator), arithmetic),
        "responses": Program(invoked(team, use_responses_api=True), arithmetic),
        "failing": Program(invoked(calculator), lambda _: Reply("overloaded", status=500)),
    }
    failing = Program(invoked(calculator), lambda _: Reply("overloaded", status=500))
    received = {
        "swarm": others["swarm"],
        "writers": others["writers"],
        **{
            f"{name}, {way}, {streaming=}, {use_responses_api=}": Program(
                make(build, streaming=streaming, use_responses_api=use_responses_api), counting
            )
            for name, build in {"agent": calculator, "team": supervised}.items()
            for way, make in WAYS.items()
            for streaming in (False, True)
            for use_responses_api in (False, True)
        },
    }
    peers = {
        tool: (
            (f"{tool}.instrumentation.langchain", name),
            (f"{tool}.instrumentation.openai", "OpenAIInstrumentor"),
        )
        for tool, name in {
            "openinference": "LangChainInstrumentor",
            "opentelemetry": "LangchainInstrumentor",
        }.items()
    }
    lost = {
        "langgraph.pregel.main:Pregel.stream": [
            *("chat", "execute_tool", "invoke_agent", "send_message"),
        ],
        "langgraph.pregel._runner:run_with_retry": ["send_message"],
    }
    sent = (
        ("supervisor", ("math",), "Mathematician, please."),
        ("math", ("supervisor",), "2 + 3 is 5"),
        ("math", ("supervisor",), "Transferring back to supervisor"),
        ("supervisor", (), "The team says 5."),
    )
    tree = """
invoke_workflow team
  invoke_agent math
    chat scripted
    chat scripted
    execute_tool add
    send_message math
    send_message math
  invoke_agent supervisor
    chat scripted
    execute_tool transfer_to_math
    send_message supervisor
  invoke_agent supervisor
    chat scripted
    send_message supervisor"""

    def asked(self, requests: Sequence[dict[str, Any]]) -> Any:
        """Return the texts alone: some calls have random ids."""
        return [[m.get("content") for m in messages_of(request)] for request in requests]

    def beside(self) -> dict[str, Any]:
        """Return the number of LangChain's hooks."""
        return {"hooks": len(_configure_hooks)}

    def built(self, url: str) -> Callable[[], Any]:
        graph = team(model(url))
        return lambda: said(graph.invoke(ask()))

    def test_a_run_reads_the_same_with_theirs(self, peer: str, shared: bool, order: str) -> None:
        """In a process for each, as the others' `uninstrument` does not take out all that they put in place."""
        if not installed(self.peers[peer][0][0]):
            pytest.skip("not installed here")
        with ProcessPoolExecutor(1, get_context("spawn")) as process:
            process.submit(apart, peer, order, shared=shared).result(timeout=120)

    def raising(self, error: Exception) -> Any:
        """A node."""

        def broken(_state: MessagesState) -> dict[str, Any]:
            raise error

        linear(MessagesState, broken=broken).invoke(ask())


@needs_langchain
class TestExample(ExampleContract):
    """The example program."""

    framework = "langgraph"
    example = "langgraph_team.py"
    replayed = ("verified", "repeated-call", "unverified")


@needs_langchain
class TestPlanted(PlantedContract):
    """One agent after the other, all on the same messages."""

    recording = ("langgraph",)

    def program(self, server: Any) -> str:
        asking = ChatOpenAI(model="gpt-small", base_url=server.url, api_key="scripted")
        tools = {
            "Storekeeper": [tool(stock.count_stock)],
            "Analyst": [tool(stock.weekly_sales)],
            "Buyer": [],
        }
        graph = StateGraph(MessagesState)
        for name in stock.AGENTS:
            prompt = f"You are {name}."
            agent = create_agent(asking, tools=tools[name], name=name, system_prompt=prompt)
            graph.add_node(name, agent)
        for one, other in itertools.pairwise([START, *stock.AGENTS, END]):
            graph.add_edge(one, other)
        built = graph.compile(name="stock")
        return built.invoke({"messages": [("user", stock.TASK)]})["messages"][-1].text
