"""Interventions in runs of a LangGraph team: all operators, and planted errors that are found again."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import pytest

agents = pytest.importorskip("langchain.agents", reason="needs LangChain 1")
if not hasattr(agents, "create_agent"):
    pytest.skip("needs LangChain 1", allow_module_level=True)
pytest.importorskip("langchain_openai")

import stock
from confirmed_planted import SOME, check_confirmed
from interventions import Stage, check_operators, check_planted, check_tools
from langchain.agents import create_agent
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, MessagesState, StateGraph
from scripted_llm import ScriptedLLM

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.framework("langgraph")


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    """The team as a graph: one agent after the other, all on the same messages."""
    with ScriptedLLM(stock.policy) as server:
        model = ChatOpenAI(model="gpt-small", base_url=server.url, api_key="scripted")
        tools = {
            "Storekeeper": [tool(stock.count_stock)],
            "Analyst": [tool(stock.weekly_sales)],
            "Buyer": [],
        }
        graph = StateGraph(MessagesState)
        for name in stock.AGENTS:
            prompt = f"You are {name}."
            agent = create_agent(model, tools=tools[name], name=name, system_prompt=prompt)
            graph.add_node(name, agent)
        order = [START, *stock.AGENTS, END]
        for one, other in itertools.pairwise(order):
            graph.add_edge(one, other)
        team = graph.compile(name="stock")

        def program() -> str:
            return team.invoke({"messages": [("user", stock.TASK)]})["messages"][-1].text

        yield Stage(program, server)


@pytest.mark.parametrize("error", stock.ERRORS, ids=lambda error: error.name)
def test_a_planted_error_is_the_earliest_that_flips(stage: Stage, error: stock.Error) -> None:
    """Held replays flip at the planted error alone; naive ones at the first answer, wherever it is."""
    check_planted(stage, error)


@pytest.mark.parametrize("error", SOME, ids=lambda error: error.name)
def test_a_planted_error_is_confirmed(stage: Stage, error: stock.Error) -> None:
    """The experiment of `mast-trace confirm` proves the planted step, and no earlier one."""
    check_confirmed(stage, error, frameworks=["langgraph"])


def test_operators(stage: Stage) -> None:
    """Each operator serves, changes and asks what it says."""
    check_operators(stage)


def test_tools(stage: Stage) -> None:
    """A tool call's result and arguments are changed, and the call is dropped."""
    check_tools(stage)
