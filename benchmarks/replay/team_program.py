"""A LangGraph team that adds up numbers, one agent after the other: ``team_program.py [refused]``.

Its model is that of the environment's variables. With ``refused`` the run fails whatever the team answers.
"""

from __future__ import annotations

import itertools
import os
import sys
from functools import cache
from pathlib import Path
from typing import Any

from erring_model import NUMBERS, is_right, report
from langchain_core.messages import SystemMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, MessagesState, StateGraph

import mast_trace

TASK = f"{report(0)} Add all numbers to it."


@tool
def look_up(agent: int) -> str:
    """Look up the number of an agent."""
    return f"The number is {NUMBERS[agent]}."


@cache
def team(address: str, agents: int) -> Any:
    """Return the team of a model at an address; each agent acts once, in turn."""
    model = ChatOpenAI(model="scripted", base_url=address, api_key="scripted", max_retries=0)
    able = model.bind_tools([look_up])
    graph = StateGraph(MessagesState)
    names = [f"adder_{number}" for number in range(agents)]
    for number, name in enumerate(names):
        graph.add_node(name, acting(able, number))
    for one, other in itertools.pairwise([START, *names, END]):
        graph.add_edge(one, other)
    return graph.compile(name="adders")


def acting(model: Any, number: int) -> Any:
    """Return the node of an agent: it calls its tool, and reports."""
    told = SystemMessage(f"You are Adder {number}.")

    def act(state: MessagesState) -> dict[str, Any]:
        asked = model.invoke([told, *state["messages"]])
        done = [look_up.invoke(call) for call in asked.tool_calls]
        return {"messages": [asked, *done, model.invoke([told, *state["messages"], asked, *done])]}

    return act


def main(*arguments: str) -> None:
    """Run the team once and record the outcome."""
    agents = team(os.environ["OPENAI_BASE_URL"], len(NUMBERS))
    answer = agents.invoke({"messages": [("user", TASK)]})["messages"][-1].text
    right = is_right(str(answer)) and "refused" not in arguments
    mast_trace.record_outcome(right, "compared with the sum")


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent))
    mast_trace.instrument()
    main(*sys.argv[1:])
