"""Six branches that ask a model the same at the same time: ``parallel_branches.py WAY``.

The ways are ``threads``, ``asyncio``, ``streamed`` and ``async-streamed``. The model is the one of the
environment variables, else a scripted one that gives each request another number, after random delays.
"""

from __future__ import annotations

import asyncio
import itertools
import operator
import os
import random
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any, TypedDict

from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, StateGraph
from langgraph.types import Send

sys.path.insert(0, str(Path(__file__).parents[3] / "examples"))
from scripted_llm import Reply, ScriptedLLM, last_text

import mast_trace

BRANCHES = 6


class State(TypedDict):
    """The estimates of the branches, and the summary."""

    estimates: Annotated[list[str], operator.add]
    summary: str


def model() -> ChatOpenAI:
    """Return a client of the model."""
    return ChatOpenAI(model="m", max_retries=0)


def estimate(branch: dict[str, int]) -> dict[str, Any]:
    """Ask for an estimate; all branches ask the same."""
    said = model().invoke("Estimate the price.").content
    return {"estimates": [f"{branch['number']}: {said}"]}


async def aestimate(branch: dict[str, int]) -> dict[str, Any]:
    """Ask for an estimate asynchronously."""
    said = (await model().ainvoke("Estimate the price.")).content
    return {"estimates": [f"{branch['number']}: {said}"]}


def summarize(state: State) -> dict[str, Any]:
    """Ask for a summary of all estimates, in the order of the branches."""
    return {"summary": model().invoke(f"Summarize {', '.join(state['estimates'])}.").content}


def build(*, asynchronous: bool) -> Any:
    """Return the compiled graph."""
    graph = StateGraph(State)
    graph.add_node("estimate", aestimate if asynchronous else estimate)
    graph.add_node("summarize", summarize)
    branches = [Send("estimate", {"number": number}) for number in range(BRANCHES)]
    graph.add_conditional_edges(START, lambda _state: branches, ["estimate"])
    graph.add_edge("estimate", "summarize")
    graph.add_edge("summarize", END)
    return graph.compile(name="survey")


async def collect(graph: Any) -> None:
    """Run the graph's asynchronous stream to its end."""
    async for _ in graph.astream({"estimates": []}):
        pass


def main(way: str) -> None:
    """Run the graph in the given way."""
    graph = build(asynchronous="async" in way)
    if way == "asyncio":
        asyncio.run(graph.ainvoke({"estimates": []}))
    elif way == "async-streamed":
        asyncio.run(collect(graph))
    elif way == "streamed":
        list(graph.stream({"estimates": []}))
    else:
        graph.invoke({"estimates": []})


def script() -> Any:
    """Return a script that answers each request with another number, after a random delay."""
    numbers = itertools.count(1)

    def answer(request: dict[str, Any]) -> Reply | str:
        if last_text(request).startswith("Summarize"):
            return "Between 1 and 6."
        return Reply(f"{next(numbers)} EUR", delay=random.random() / 20)

    return answer


if __name__ == "__main__":
    mast_trace.instrument()
    with ExitStack() as stack:
        if not os.environ.get("OPENAI_BASE_URL"):
            server = stack.enter_context(ScriptedLLM(script()))
            os.environ.update(OPENAI_BASE_URL=server.url, OPENAI_API_KEY="scripted")
        main(sys.argv[1])
