"""Programs of twenty model calls, to be timed: ``twenty_steps.py [graph]``, by hand or as a graph of LangGraph."""

from __future__ import annotations

import itertools
import sys

import openai

import mast_trace

STEPS = 20
TASK = "Count to twenty."


def by_hand() -> None:
    """Ask the model in turn in the name of two agents."""
    client = openai.OpenAI(max_retries=0)
    said = TASK
    with mast_trace.run("counters", input=TASK):
        for number in range(STEPS):
            with mast_trace.agent(f"counter {number % 2}") as agent:
                asked = [{"role": "user", "content": f"Step {number}. {said}"}]
                answer = client.chat.completions.create(model="scripted", messages=asked)  # type: ignore[arg-type]
                said = answer.choices[0].message.content or ""
                agent.reply(said)
        mast_trace.record_outcome(False, "never right")


def graph() -> None:
    """Ask the model in twenty nodes of a graph, each with all messages before."""
    from langchain_openai import ChatOpenAI
    from langgraph.graph import END, START, MessagesState, StateGraph

    model = ChatOpenAI(model="scripted", max_retries=0)

    def ask(state: MessagesState) -> dict[str, object]:
        return {"messages": [model.invoke(state["messages"])]}

    made = StateGraph(MessagesState)
    names = [f"counter_{number}" for number in range(STEPS)]
    for name in names:
        made.add_node(name, ask)
    for one, other in itertools.pairwise([START, *names, END]):
        made.add_edge(one, other)
    made.compile(name="counters").invoke({"messages": [("user", TASK)]}, {"recursion_limit": 50})
    mast_trace.record_outcome(False, "never right")


PROGRAMS = {"by hand": by_hand, "graph": graph}

if __name__ == "__main__":
    mast_trace.instrument()
    PROGRAMS["graph" if "graph" in sys.argv else "by hand"]()
