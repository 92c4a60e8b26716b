"""Multi-agent programs on LangGraph, and the scripts that their models follow."""

from __future__ import annotations

import operator
from typing import Annotated, Any, TypedDict

from langchain_core.messages import AIMessage, HumanMessage
from langgraph.graph import END, START, MessagesState, StateGraph
from scripted_llm import Call, Reply, last_text, messages_of, system_text

try:
    from langchain.agents import create_agent
except ImportError:  # before LangChain 1.0
    from langgraph.prebuilt import create_react_agent

    def create_agent(model, tools, *, name=None, system_prompt=None, **more):
        return create_react_agent(model, tools, name=name, prompt=system_prompt, **more)


QUESTION = "How much is 2 + 3?"


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def ask(text: str = QUESTION) -> dict[str, Any]:
    """The input of a run."""
    return {"messages": [{"role": "user", "content": text}]}


def arithmetic(request: dict[str, Any]) -> Reply | str:
    """A boss hands over to a mathematician, who uses a tool, and reports."""
    last = messages_of(request)[-1]
    if "boss" in system_text(request):
        if last.get("role") == "user":
            return Reply("Mathematician, please.", calls=(Call("transfer_to_math"),))
        return "The team says 5."
    if last.get("role") != "user" and last_text(request) == "5":
        return "2 + 3 is 5"
    return Reply(calls=(Call("add", {"a": 2, "b": 3}),))


def calculator(model: Any, **options: Any) -> Any:
    """One agent with one tool."""
    settings = {"name": "math", "system_prompt": "You do math.", **options}
    return create_agent(model, [add], **settings)


def supervised(model: Any, **options: Any) -> Any:
    """A supervisor over the calculator."""
    from langgraph_supervisor import create_supervisor

    team = create_supervisor([calculator(model)], model=model, prompt="You are the boss.")
    return team.compile(**options)


def swarm(model: Any) -> Any:
    """Two agents that hand over to each other."""
    from langgraph_swarm import create_handoff_tool, create_swarm

    alice = create_agent(
        model,
        [create_handoff_tool(agent_name="Bob")],
        name="Alice",
        system_prompt="You are Alice.",
    )
    bob = create_agent(model, [add], name="Bob", system_prompt="You are Bob.")
    return create_swarm([alice, bob], default_active_agent="Alice").compile()


def swarm_script(request: dict[str, Any]) -> Reply | str:
    """Alice hands over, Bob adds and answers."""
    if "Alice" in system_text(request):
        return Reply(calls=(Call("transfer_to_bob"),))
    if last_text(request) == "5":
        return "Bob says 5"
    return Reply(calls=(Call("add", {"a": 2, "b": 3}),))


def writers(model: Any) -> Any:
    """A plain graph: a writer and a critic, each a function that asks the model."""

    def writer(state: MessagesState) -> dict[str, Any]:
        return {"messages": [model.invoke([("system", "You write."), *state["messages"]])]}

    def critic(state: MessagesState) -> dict[str, Any]:
        criticism = model.invoke([("system", "You criticise."), *state["messages"]]).content
        return {"messages": [HumanMessage(criticism, name="critic")]}

    return linear(MessagesState, writer=writer, critic=critic)


def writers_script(request: dict[str, Any]) -> str:
    """The writer writes, the critic criticises."""
    return "A poem." if "write" in system_text(request) else "Too short."


def linear(state: type, **nodes: Any) -> Any:
    """A graph whose nodes run one after the other."""
    return chain(state, **nodes).compile()


def chain(state: type, **nodes: Any) -> StateGraph:
    """The builder of such a graph."""
    builder = StateGraph(state)
    previous = START
    for name, node in nodes.items():
        builder.add_node(name, node)
        builder.add_edge(previous, name)
        previous = name
    builder.add_edge(previous, END)
    return builder


def says(text: str, **more: Any) -> Any:
    """A node that says ``text``."""

    def node(_state: Any) -> dict[str, Any]:
        return {"messages": [AIMessage(text, **more)]}

    return node


class Topics(TypedDict, total=False):
    """The state of a map and reduce program."""

    topics: list[str]
    facts: Annotated[list[str], operator.add]
    report: str


PROGRAMS = {
    "supervisor": (supervised, arithmetic),
    "swarm": (swarm, swarm_script),
    "writers": (writers, writers_script),
    "agent": (calculator, arithmetic),
}
"""Programs by name, with the scripts of their models."""
