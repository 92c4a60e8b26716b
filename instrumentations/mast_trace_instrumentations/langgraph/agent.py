"""Executions of nodes: the turn of an agent, its messages, and the agents that come next."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any

from opentelemetry import context as otel_context

from mast_trace import semconv
from mast_trace.messages import Message
from mast_trace.spans import current_agent, current_run, with_agent
from mast_trace_instrumentations.langgraph import reading
from mast_trace_instrumentations.langgraph.routing import (
    answer_of,
    chosen_by_model,
    handoff_of,
    next_nodes,
    utter,
)
from mast_trace_instrumentations.langgraph.state import (
    GraphScope,
    NodeScope,
    PendingMessage,
    current_scope,
    is_control_flow,
    with_scope,
)

_RESULTS = frozenset({"__return__", "__end__"})
"""Channels that hold the results of functions of the functional API."""
_UNSPOKEN = frozenset({"tool", "function", "remove"})
"""Types of messages that no agent sends: tool results are on the span of the tool."""
_USER = "user"
_PUSH = "__pregel_push"


def snapshot(given: Any) -> Any:
    """Copy a node's input as it is now: reducers may extend its lists in place."""
    return reading.messages_in(given) or given


def enter_loop(graph: GraphScope, given: Any) -> None:
    """Record the input of the agent that ``graph`` is: the input of the loop's first node.

    That input includes the history from the checkpointer; the graph's own input does not.
    """
    if graph.shown is not None:
        return
    graph.shown = snapshot(given)
    outer = graph.outer
    if graph.span is None and isinstance(outer, NodeScope):
        outer.shown = graph.shown
        graph.replies_to = record_shown(outer)
    else:
        record_shown(graph)


def record_shown(scope: GraphScope | NodeScope) -> str | None:
    """Write the agent's input on the span of its turn, once; return the id of the message to answer."""
    if scope.replies_to is None and scope.span is not None:
        shown = _read(scope)
        if shown:
            attributes = scope.telemetry.inputs(shown, scope.context)
            scope.span.set(attributes)
            scope.replies_to = attributes[semconv.INPUT_MESSAGE_IDS][_answered(scope.shown)]
    return scope.replies_to


def _read(scope: GraphScope | NodeScope) -> list[Message]:
    if _holds_messages(scope.shown):
        return scope.memory.read_all(scope.shown)
    return reading.leaves(scope.shown)


def _answered(shown: Any) -> int:
    """The position of the last message with a text of an agent or a person: tool results do not count."""
    if _holds_messages(shown):
        for position in range(len(shown) - 1, -1, -1):
            if shown[position].type != "tool" and not reading.is_synthetic(shown[position]):
                return position
    return -1


def _holds_messages(shown: Any) -> bool:
    return isinstance(shown, list) and bool(shown) and reading.is_message(shown[0])


def begin_node(task: Any) -> NodeScope | None:
    """Enter a node; None where there is nothing to record.

    Args:
        task: LangGraph's `PregelExecutableTask`.
    """
    context = otel_context.get_current()
    around = current_scope(context)
    if task.name == "__start__" or not isinstance(around, GraphScope | NodeScope):
        return None
    graph, caller = (around.graph, around) if isinstance(around, NodeScope) else (around, None)
    if graph.agent:
        enter_loop(graph, task.input)
        scope = NodeScope(graph, graph.agent, context, replies_to=graph.replies_to)
    elif task.name in graph.shape.tool_nodes:
        scope = NodeScope(graph, current_agent(context) or "", context)
    else:
        agent = graph.shape.speakers.get(task.name, task.name)
        span = graph.telemetry.agent(agent, parent=context, attributes=_branch(task.path))
        # The node's own code acts until that agent's graph begins.
        own = span.context if agent == task.name else with_agent(task.name, span.context)
        scope = NodeScope(graph, agent, own, span, caller, snapshot(task.input))
    scope.context = with_scope(scope, scope.context)
    return scope


def _branch(path: Sequence[Any]) -> dict[str, Any] | None:
    """Return the number of a node among those that were sent to, or called, together.

    Args:
        path: ``("__pregel_push", number)``, ``("__pregel_push", path of the caller, number, ...)``, or
            another one of a node that an edge leads to.
    """
    if path[0] != _PUSH:
        return None
    number = next((part for part in path[1:] if isinstance(part, int)), None)
    return None if number is None else {semconv.BRANCH: number}


def end_node(scope: NodeScope, task: Any, returned: Any, error: BaseException | None) -> None:
    """Leave a node: record its messages and their recipients, and end its span.

    Args:
        scope: as returned by `begin_node`.
        task: LangGraph's `PregelExecutableTask`.
        returned: the node's result; None where LangGraph does not keep it.
        error: the exception that it raised.
    """
    graph = scope.graph
    record_shown(scope)
    steering = is_control_flow(error)
    if steering:
        _record_interrupts(scope, error)
    queue = [*scope.pending, *_written(scope, task)]
    led_to = next_nodes(task.writes)
    recipients = _recipients(scope, led_to)
    handoff = handoff_of(scope, task.name, led_to, returned)
    if queue:
        graph.last = answer_of(queue).message
    if graph.outer is not None and not recipients and (graph.agent or not led_to):
        # An outer node decides who comes next.
        graph.outer.pending.extend(queue)
    else:
        utter(graph.telemetry, queue, recipients, scope.replies_to, handoff)
    if isinstance(graph.outer, NodeScope):
        graph.outer.handed_off |= scope.handed_off
        if type(error).__name__ == "ParentCommand":
            graph.outer.command = error.args[0] if error is not None else None
    if scope.caller is not None:
        scope.caller.relayed.update(each.message.key for each in queue)
    if scope.span is not None:
        if queue:
            scope.span.reply(answer_of(queue).message)
        scope.span.set(_selection(scope, task.name, led_to, recipients))
        if not queue:
            scope.span.set(handoff)
        scope.span.end(None if steering else error)


def note_attempt(*, again: bool) -> None:
    """Count a failed attempt of the current node that LangGraph repeats if ``again``."""
    scope = current_scope()
    if again and isinstance(scope, NodeScope):
        scope.failures += 1
        scope.stands_for_graph = False
        scope.named.clear()


def _selection(
    scope: NodeScope, node: str, led_to: Sequence[str], recipients: Sequence[str]
) -> dict[str, Any]:
    attributes: dict[str, Any] = {}
    if recipients and scope.caller is None:
        by_model = chosen_by_model(scope, node, led_to)
        attributes[semconv.SELECTED_BY] = "model" if by_model else "code"
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


def _written(scope: NodeScope, task: Any) -> list[PendingMessage]:
    """Return the node's own output: its new messages, else its update of the state."""
    written: list[PendingMessage] = []
    relayed = {each.message.key for each in scope.pending} | scope.relayed
    update: dict[str, Any] = {}
    found: list[Any] = []
    for channel, value in task.writes:
        given = None if value is None else reading.messages_in(_unwrapped(value))
        if given:
            found.extend(given)
        elif channel in _RESULTS or not (channel[:2] == "__" or ":" in channel):
            update[channel] = value
    memory = scope.memory
    for raw in _new(scope, task.input, found):
        message = memory.read(raw)
        memory.ask(message, scope.agent)
        if message.content and message.key not in relayed:
            # The reducer will give ids to messages without one: until then, equal texts are
            # distinguished by object.
            now = _pending_message(scope, message, synthetic=reading.is_synthetic(raw), kept=True)
            memory.keep(raw, now.message)
            written.append(now)
    if not found and not scope.graph.agent:
        written.extend(
            _pending_message(scope, message)
            for message in _updated(update)
            if message.content and message.key not in relayed
        )
    return written


def _new(scope: NodeScope, shown: Any, found: Sequence[Any]) -> Iterator[Any]:
    """Leave out repetitions: the node's input, and messages that were recorded before."""
    if not found:
        return
    given = reading.messages_in(shown)
    objects = {id(raw) for raw in given}
    ids = {raw.id for raw in given if raw.id}
    say = scope.memory.say
    for raw in found:
        if id(raw) in objects or raw.id in ids or raw.type in _UNSPOKEN:
            continue
        if say(raw):
            yield raw


def _updated(update: dict[str, Any]) -> list[Message]:
    given = [
        message
        for channel, value in update.items()
        for message in reading.written_shorthand(channel, value)
    ]
    if given:
        return given
    # The result of a function has no name; LangGraph's channel for it is none.
    results = [reading.value_text(update.pop(channel)) for channel in _RESULTS & set(update)]
    return [Message(text) for text in (*results, reading.update_text(update))]


def _pending_message(
    scope: NodeScope, message: Message, *, synthetic: bool = False, kept: bool = False
) -> PendingMessage:
    sender = message.name or scope.agent
    message = scope.telemetry.identify(sender, message, parent=scope.context, kept=kept)
    return PendingMessage(
        message, sender, scope.context, time.time_ns(), synthetic, scope.replies_to
    )


def _unwrapped(value: Any) -> Any:
    """`Overwrite(value)` replaces a channel's content instead of adding to it."""
    return value.value if type(value).__name__ == "Overwrite" else value


def _record_interrupts(scope: NodeScope, error: BaseException | None) -> None:
    """An interrupt asks the human a question: one message, even if it passes through several nodes."""
    raised = error.args[0] if error is not None and error.args else ()
    run = current_run(scope.context)
    for interrupt in raised if isinstance(raised, list | tuple) else ():
        if not hasattr(interrupt, "value"):
            continue
        scope.graph.interrupted = True
        text = reading.value_text(interrupt.value)
        if text and run is not None and run.once(("interrupt", getattr(interrupt, "id", text))):
            utter(scope.telemetry, [_pending_message(scope, Message(text))], [_USER])
