"""Graphs whose nodes choose who goes on, and what is recorded of that."""

from __future__ import annotations

import json
from typing import Any

from langgraph.graph import START, MessagesState, StateGraph
from langgraph_programs import (
    says,
)
from pydantic import BaseModel
from scripted_llm import Call, Reply

from mast_trace import semconv


class Route(BaseModel):
    """The next speaker, and the reason."""

    next: str
    reason: str = ""


class Grade(BaseModel):
    """The grade of a draft."""

    score: int
    comment: str = ""


def routes(answer: dict[str, Any]) -> Any:
    """A model that gives this answer in the form that it is asked for."""

    def script(request: dict[str, Any]) -> Reply | str:
        tools = request.get("tools") or ()
        if tools:
            return Reply(calls=(Call(tools[0]["function"]["name"], answer),))
        return json.dumps(answer)

    return script


def desk(node: Any, *others: str, **conditional: Any) -> StateGraph:
    """A graph that begins at ``desk``, which leads to one of the others."""
    builder = StateGraph(MessagesState)
    builder.add_node("desk", node)
    for name in others:
        builder.add_node(name, says(f"I am the {name}."))
    builder.add_edge(START, "desk")
    for path in conditional.values():
        builder.add_conditional_edges("desk", path, list(others))
    return builder


def turn(recorded: Any, agent: str) -> dict[str, Any]:
    """The attributes of an agent's first turn."""
    turns = [s.attributes for s in recorded.named("invoke_agent")]
    return next(t for t in turns if t["gen_ai.agent.name"] == agent)


def chosen_by(recorded: Any) -> Any:
    return turn(recorded, "desk").get(semconv.SELECTED_BY)


def handoffs(recorded: Any) -> list[tuple[str, str, str]]:
    """The operation, the source and the target of every hand-off."""
    return [
        (
            str(s.attributes[semconv.OPERATION_NAME]),
            str(s.attributes[semconv.HANDOFF_SOURCE]),
            str(s.attributes[semconv.HANDOFF_TARGET]),
        )
        for s in recorded.all
        if semconv.HANDOFF_TARGET in s.attributes
    ]
