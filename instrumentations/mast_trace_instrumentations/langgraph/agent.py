"""Executions of nodes: whose turn it is, what is said in it, and who gets the word next."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from opentelemetry import context as otel_context

from mast_trace import semconv
from mast_trace.messages import Message
from mast_trace.spans import current_agent, current_run
from mast_trace_instrumentations.langgraph import reading
from mast_trace_instrumentations.langgraph.message import answer_of, next_nodes, utter
from mast_trace_instrumentations.langgraph.shown import enter_loop, record_shown, snapshot
from mast_trace_instrumentations.langgraph.state import (
    GraphScope,
    NodeScope,
    Said,
    current_scope,
    is_control_flow,
    with_scope,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_RESULTS = frozenset({"__return__", "__end__"})
"""Channels that hold what functions of the functional API return."""
_UNSPOKEN = frozenset({"tool", "function", "remove"})
"""Types of messages that no agent says: tool results are on the span of the tool."""
_USER = "user"


def begin_node(task: Any) -> NodeScope | None:
    """Enter a node; None where there is nothing to record.

    Args:
        task: LangGraph's `PregelExecutableTask`.
    """
    around = current_scope()
    if task.name == "__start__" or not isinstance(around, GraphScope | NodeScope):
        return None
    graph, caller = (around.graph, around) if isinstance(around, NodeScope) else (around, None)
    context = otel_context.get_current()
    if graph.agent:
        enter_loop(graph, task.input)
        scope = NodeScope(graph, graph.agent, context, replies_to=graph.replies_to)
    elif task.name in graph.shape.tool_nodes:
        scope = NodeScope(graph, current_agent(context) or "", context)
    else:
        agent = graph.shape.speakers.get(task.name, task.name)
        span = graph.telemetry.agent(agent, parent=context)
        scope = NodeScope(graph, agent, span.context, span, caller, snapshot(task.input))
    scope.context = with_scope(scope, scope.context)
    return scope


def end_node(scope: NodeScope, task: Any, error: BaseException | None) -> None:
    """Leave a node: record what was said in it, pass on the word, end its span."""
    graph = scope.graph
    record_shown(scope)
    steering = is_control_flow(error)
    if steering:
        _record_interrupts(scope, error)
    queue = [*scope.pending, *_written(scope, task)]
    led_to = next_nodes(task.writes)
    recipients = _recipients(scope, led_to)
    if queue:
        graph.last = answer_of(queue).message
    if graph.outer is not None and not recipients and (graph.agent or not led_to):
        # Who gets the word is decided further out.
        graph.outer.pending.extend(queue)
    else:
        utter(graph.telemetry, queue, recipients, scope.replies_to)
    if scope.handed_off and isinstance(graph.outer, NodeScope):
        graph.outer.handed_off = True
    if scope.caller is not None:
        scope.caller.relayed.update(said.message.key for said in queue)
    if scope.span is not None:
        if queue:
            scope.span.reply(answer_of(queue).message)
        scope.span.set(_selection(scope, recipients))
        scope.span.end(None if steering else error)


def note_attempt(*, again: bool) -> None:
    """Count a failed attempt of the current node that LangGraph makes ``again``."""
    scope = current_scope()
    if again and isinstance(scope, NodeScope):
        scope.failures += 1
        scope.stands_for_graph = False


def _selection(scope: NodeScope, recipients: Sequence[str]) -> dict[str, Any]:
    attributes: dict[str, Any] = {}
    if recipients and scope.caller is None:
        attributes[semconv.SELECTED_BY] = "model" if scope.handed_off else "code"
        if len(recipients) == 1:
            attributes[semconv.SELECTED_SPEAKER] = recipients[0]
    if scope.failures:
        attributes[semconv.FAILED_ATTEMPTS] = scope.failures
    return attributes


def _recipients(scope: NodeScope, led_to: Sequence[str]) -> list[str]:
    if scope.caller is not None:
        return [scope.caller.agent]
    shape = scope.graph.shape
    if scope.graph.agent:
        return []
    speakers = [shape.speakers.get(node, node) for node in led_to if node not in shape.tool_nodes]
    return list(dict.fromkeys(speakers))


def _written(scope: NodeScope, task: Any) -> list[Said]:
    """Return what the node itself says: its new messages, else its update of the state."""
    said: list[Said] = []
    relayed = {each.message.key for each in scope.pending} | scope.relayed
    update: dict[str, Any] = {}
    found: list[Any] = []
    for channel, value in task.writes:
        given = reading.messages_in(_unwrapped(value))
        found.extend(given)
        if not given and (channel in _RESULTS or not (channel[:2] == "__" or ":" in channel)):
            update[channel] = value
    for raw in _new(scope, task.input, found):
        message = scope.memory.read(raw)
        scope.memory.ask(message, scope.agent)
        if message.content and message.key not in relayed:
            said.append(_said(scope, message, synthetic=reading.is_synthetic(raw)))
    if not found and not scope.graph.agent:
        said.extend(
            _said(scope, message)
            for message in _updated(update)
            if message.content and message.key not in relayed
        )
    return said


def _new(scope: NodeScope, shown: Any, found: Sequence[Any]) -> Iterator[Any]:
    """Leave out what is written again: what the node was given, what was said before."""
    if not found:
        return
    given = reading.messages_in(shown)
    objects = {id(raw) for raw in given}
    ids = {raw.id for raw in given if raw.id}
    for raw in found:
        if id(raw) in objects or raw.id in ids or raw.type in _UNSPOKEN:
            continue
        if scope.memory.say(raw):
            yield raw


def _updated(update: dict[str, Any]) -> list[Message]:
    given = [
        message
        for channel, value in update.items()
        for message in reading.written_shorthand(channel, value)
    ]
    return given or [Message(reading.update_text(update))]


def _said(scope: NodeScope, message: Message, *, synthetic: bool = False) -> Said:
    sender = message.name or scope.agent
    return Said(message, sender, scope.context, time.time_ns(), synthetic, scope.replies_to)


def _unwrapped(value: Any) -> Any:
    """`Overwrite(value)` replaces a channel's content instead of adding to it."""
    return value.value if type(value).__name__ == "Overwrite" else value


def _record_interrupts(scope: NodeScope, error: BaseException | None) -> None:
    """An interrupt asks the human something: that is a message, however many nodes it leaves."""
    raised = error.args[0] if error is not None and error.args else ()
    run = current_run(scope.context)
    for interrupt in raised if isinstance(raised, list | tuple) else ():
        if not hasattr(interrupt, "value"):
            continue
        scope.graph.interrupted = True
        text = reading.update_text({"value": interrupt.value})
        if text and run is not None and run.once(("interrupt", getattr(interrupt, "id", text))):
            utter(scope.telemetry, [_said(scope, Message(text))], [_USER])
