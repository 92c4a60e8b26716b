"""Executions of graphs: the root of a run, the turn of an agent, or a part of a node's turn."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

from opentelemetry import context as otel_context
from opentelemetry.trace import Link, SpanContext, format_trace_id

from mast_trace import semconv
from mast_trace.messages import Message
from mast_trace.semconv import Termination
from mast_trace.spans import RunSpan, Telemetry, current_run, with_agent
from mast_trace_instrumentations.langgraph import reading
from mast_trace_instrumentations.langgraph.graphs import GraphShape, shape_of
from mast_trace_instrumentations.langgraph.state import (
    GraphScope,
    Memory,
    NodeScope,
    ToolScope,
    current_scope,
    is_control_flow,
    with_scope,
)

_MOST_INTERRUPTED = 1024


class Interrupted:
    """The runs that wait for a human, by thread id, so that a resuming run can link to them."""

    def __init__(self) -> None:
        self._roots: OrderedDict[str, SpanContext] = OrderedDict()

    def add(self, thread: str, root: SpanContext) -> None:
        """Note that the run with this root span waits."""
        self._roots[thread] = root
        self._roots.move_to_end(thread)
        while len(self._roots) > _MOST_INTERRUPTED:
            self._roots.popitem(last=False)

    def take(self, thread: str) -> list[Link]:
        """Return the link to the run that waits on this thread, if one does."""
        root = self._roots.pop(thread, None)
        return [] if root is None else [Link(root)]


class GraphRun:
    """One call of `Pregel.stream` or `Pregel.astream`."""

    def __init__(
        self, telemetry: Telemetry, interrupted: Interrupted, graph: Any, given: Any, config: Any
    ) -> None:
        self._interrupted = interrupted
        self._thread = _thread_of(graph, config)
        self.scope = self._begin(telemetry, shape_of(graph), given)
        self.context = self.scope.context

    def _begin(self, telemetry: Telemetry, shape: GraphShape, given: Any) -> GraphScope:
        context = otel_context.get_current()
        around = current_scope(context)
        scope = GraphScope(
            telemetry, shape, around.memory if around else Memory(), context, agent=shape.agent
        )
        if current_run(context) is None:
            scope.memory = Memory()
            scope.run = self._begin_run(telemetry, scope, given)
            scope.context = scope.run.context
        elif isinstance(around, NodeScope | ToolScope):
            scope.outer = around
        if shape.agent:
            _begin_turn(scope)
        scope.context = with_scope(scope, scope.context)
        return scope

    def _begin_run(self, telemetry: Telemetry, scope: GraphScope, given: Any) -> RunSpan:
        links = self._interrupted.take(self._thread) if self._thread and _resumes(given) else None
        return telemetry.run(
            scope.shape.name,
            parent=scope.context,
            input=_asked(given, scope.memory),
            conversation_id=self._thread,
            links=links,
            attributes={semconv.RUN_RESUMES: _trace_id(links)},
        )

    def end(self, _result: Any, error: BaseException | None) -> None:
        """End the turn and the run that were begun."""
        scope = self.scope
        failure = None if _is_no_failure(error) else error
        if scope.span is not None:
            if scope.last is not None:
                scope.span.reply(scope.last)
            scope.span.end(failure)
        if scope.run is not None:
            reason = _termination(scope, error)
            if reason == Termination.INTERRUPTED and self._thread:
                self._interrupted.add(self._thread, scope.run.span.get_span_context())
            scope.run.finish(reason, error=failure)


def _begin_turn(scope: GraphScope) -> None:
    """Begin the turn of the agent that the graph is, unless a node's span is that turn already."""
    outer = scope.outer
    if isinstance(outer, NodeScope) and outer.span is not None and not outer.stands_for_graph:
        if not scope.shape.named:
            scope.agent = outer.agent
        if scope.agent == outer.agent:
            outer.stands_for_graph = True
            scope.context = with_agent(scope.agent, scope.context)
            return
    scope.span = scope.telemetry.agent(scope.agent, parent=scope.context)
    scope.context = scope.span.context


def note_exit(loop: Any, error: BaseException | None) -> None:
    """Note the reason why a graph's loop stopped, from the loop's own state."""
    scope = current_scope()
    if isinstance(scope, GraphScope):
        scope.interrupted |= str(loop.status).startswith("interrupt_")
        scope.interrupted |= type(error).__name__ == "GraphInterrupt"


def _termination(scope: GraphScope, error: BaseException | None) -> str:
    if error is None or is_control_flow(error):
        if scope.interrupted:
            return Termination.INTERRUPTED
        soft_end = scope.last is not None and scope.last.content == reading.OUT_OF_STEPS
        return Termination.RECURSION_LIMIT if soft_end else Termination.COMPLETED
    if type(error).__name__ == "GraphRecursionError":
        return Termination.RECURSION_LIMIT
    if type(error).__name__ == "GraphDrained" or _is_cancellation(error):
        return Termination.CANCELLED
    return Termination.ERROR


def _is_no_failure(error: BaseException | None) -> bool:
    return error is None or is_control_flow(error) or isinstance(error, GeneratorExit)


def _is_cancellation(error: BaseException) -> bool:
    return isinstance(error, GeneratorExit | asyncio.CancelledError | KeyboardInterrupt)


def _trace_id(links: Sequence[Link] | None) -> str | None:
    return format_trace_id(links[0].context.trace_id) if links else None


def _resumes(given: Any) -> bool:
    return given is None or type(given).__name__ == "Command"


def _asked(given: Any, memory: Memory) -> list[Message]:
    """Return the task of the run; the human's answer, where the run resumes an interrupt."""
    if given is None:
        return []
    if type(given).__name__ == "Command":
        resume = given.resume
        return [] if resume is None else [Message(reading.value_text(resume), role="user")]
    found = reading.messages_in(given)
    if found:
        return memory.read_all(found)
    if isinstance(given, dict) and "messages" in given:
        spelled = reading.shorthand(given["messages"])
        if spelled:
            return spelled
    return reading.leaves(given)


def _thread_of(graph: Any, config: Mapping[str, Any] | None) -> str | None:
    for each in (config, getattr(graph, "config", None)):
        thread = ((each or {}).get("configurable") or {}).get("thread_id")
        if thread is not None:
            return str(thread)
    return None
