"""Model calls of clients in a hand-made run: what the tests of every client ask of their spans."""

from __future__ import annotations

import json
from contextlib import contextmanager
from importlib import import_module
from inspect import getattr_static
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from mast_trace import semconv

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from recorded_spans import RecordedSpans

    from mast_trace_instrumentations.base import Instrumentor

ANSWER = "An answer that comes in several pieces."


@contextmanager
def a_run(recorded: RecordedSpans) -> Iterator[None]:
    """Be in the turn of an agent."""
    telemetry = recorded.instrumentor.telemetry
    run = telemetry.run("work")
    agent = telemetry.agent("worker", parent=run.context)
    with agent.attached():
        yield
    agent.end()
    run.finish("completed")


def under_langgraph(recorded: RecordedSpans, model: Any, ask: Callable[[], str], asked: str) -> Any:
    """Run a graph of two nodes: LangChain's model answers in one, and a client of the program's in the other.

    The model is read as a stream before it answers if that is asked for. Returns the spans of the calls.
    """
    from langgraph.graph import START, MessagesState, StateGraph

    from mast_trace_instrumentations.langgraph import LangGraphInstrumentor

    def through_langchain(state: Any) -> dict[str, Any]:
        if asked == "stream":
            list(model.stream(state["messages"]))
        return {"messages": [model.invoke(state["messages"])]}

    builder = StateGraph(MessagesState)
    builder.add_node("through_langchain", through_langchain)
    builder.add_node("directly", lambda _state: {"messages": [("ai", ask())]})
    builder.add_edge(START, "through_langchain")
    builder.add_edge("through_langchain", "directly")
    langgraph = LangGraphInstrumentor()
    langgraph.instrument(tracer_provider=recorded.provider)
    try:
        builder.compile().invoke({"messages": [("user", asked)]})
    finally:
        langgraph.uninstrument()
    recorded.check_shape()
    return [
        (span.attributes[semconv.FRAMEWORK], span.attributes[semconv.AGENT_NAME])
        for span in recorded.named(semconv.CHAT)
    ]


def use_tool(recorded: RecordedSpans, name: str, arguments: Any, call_id: str | None) -> str:
    """Execute a tool that always finds the same."""
    span = recorded.instrumentor.telemetry.tool(name, arguments=arguments, call_id=call_id)
    span.result("42")
    span.end()
    return "42"


def chat(recorded: RecordedSpans) -> Any:
    """The attributes of the one chat span."""
    (span,) = recorded.named(semconv.CHAT)
    assert span.attributes["gen_ai.agent.name"] == "worker"
    return span.attributes


def answers(recorded: RecordedSpans) -> list[str]:
    """Return the models' answers, call by call."""
    return [i.output_text for i in recorded.trajectory().invocations if i.kind == "model"]


def check_apart(recorded: RecordedSpans, number: int) -> None:
    """Calls that were made at once are one span each, with their own questions ("Hello 7")."""
    run = recorded.trajectory()
    calls = [i for i in run.invocations if i.kind == "model"]
    asked = sorted(run.seen_by(call)[1].content for call in calls)
    assert asked == sorted(f"Hello {n}" for n in range(number))
    assert answers(recorded) == [ANSWER] * number


def asked_for(recorded: RecordedSpans) -> list[Any]:
    """The tool calls that the one answer asks for."""
    (step,) = recorded.trajectory().steps
    return list(json.loads(step.arguments))


def shown(recorded: RecordedSpans) -> list[tuple[str, str]]:
    """Roles and texts of what the one call showed to the model."""
    run = recorded.trajectory()
    (call,) = [i for i in run.invocations if i.kind == "model"]
    return [(message.role, message.content) for message in run.seen_by(call)]


def targets(instrumentor: type[Instrumentor]) -> dict[str, Any]:
    """The objects that lie where an instrumentation's rows point; None for one that is inherited."""
    found: dict[str, Any] = {}
    for patch in instrumentor.patches:
        owner, _, name = patch.target.rpartition(".")
        try:
            module = import_module(patch.module)
            holder = attrgetter(owner)(module) if owner else module
            getattr_static(holder, name)
            found[patch.path] = vars(holder).get(name)
        except (ImportError, AttributeError):
            continue
    return found
