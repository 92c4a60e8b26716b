"""Programs that ask a person: ``asking.py WAY``.

The ways are ``before`` and ``inside`` a run of a hand-made agent, in a ``thread``, inside of a ``tool``,
``once-more`` than recorded, ``twice`` in two runs, and ``resumed``: a graph of LangGraph that is interrupted for a person's answer, which comes
from the program itself in the way ``resumed-without-asking``.
"""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypedDict

import openai

import mast_trace


def ask(question: str) -> str:
    """Ask the model a question and return its answer."""
    asked = [{"role": "user", "content": question}]
    answer = openai.OpenAI(max_retries=0).chat.completions.create(model="m", messages=asked)
    return answer.choices[0].message.content or ""


@mast_trace.tool
def confirm(item: str) -> str:
    """Ask a person inside of a tool."""
    return input(f"Is {item} right? ")


def by_hand(way: str) -> None:
    """Ask a person for an item and the model about it."""
    item = input("Which item? ") if way == "before" else ""
    with mast_trace.run("shop"), mast_trace.agent("seller") as seller:
        if way == "thread":
            with ThreadPoolExecutor() as pool:
                item = pool.submit(input, "Which item? ").result()
        if way == "once-more":
            input("Are you there? ")
        if way == "tool":
            item = confirm("kettle")
            with mast_trace.tool("block"):
                item += input("Really? ")
            item += input("Which color? ")
        seller.reply(ask(f"What does {item or input('Which item? ')} cost?"))
    try:
        while input("More? "):
            pass
    except EOFError:
        pass


def twice() -> None:
    """Ask in two runs, of which the second goes on from the first."""
    words = input("Which item? ")
    for question in ("What does {} cost?", "Is this right? {}"):
        with mast_trace.run("shop"), mast_trace.agent("seller") as seller:
            words = ask(question.format(words))
            seller.reply(words)


class State(TypedDict):
    """The draft, the person's words about it and the final text."""

    draft: str
    words: str
    text: str


def resumed(way: str) -> None:
    """Interrupt a graph, ask a person, and let it go on with the answer."""
    from langchain_openai import ChatOpenAI
    from langgraph.checkpoint.memory import MemorySaver
    from langgraph.graph import END, START, StateGraph
    from langgraph.types import Command, interrupt

    model = ChatOpenAI(model="m", max_retries=0)

    def write(_state: State) -> dict[str, Any]:
        return {"draft": model.invoke("Write a draft.").content}

    def review(state: State) -> dict[str, Any]:
        return {"words": interrupt(f"Is this right? {state['draft']}")}

    def finish(state: State) -> dict[str, Any]:
        return {"text": model.invoke(f"{state['draft']} Change: {state['words']}").content}

    graph = StateGraph(State)
    for node in (write, review, finish):
        graph.add_node(node.__name__, node)
    graph.add_edge(START, "write")
    graph.add_edge("write", "review")
    graph.add_edge("review", "finish")
    graph.add_edge("finish", END)
    compiled = graph.compile(checkpointer=MemorySaver(), name="writers")
    thread: Any = {"configurable": {"thread_id": "1"}}
    asked = compiled.invoke({"draft": "", "words": "", "text": ""}, thread)["__interrupt__"]
    words = "shorter" if "without" in way else input(f"{asked[0].value} ")
    compiled.invoke(Command(resume=words), thread)


if __name__ == "__main__":
    mast_trace.instrument()
    if sys.argv[1].startswith("resumed"):
        resumed(sys.argv[1])
    elif sys.argv[1] == "twice":
        twice()
    else:
        by_hand(sys.argv[1])
