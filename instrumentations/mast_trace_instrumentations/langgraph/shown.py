"""The input of an agent at the beginning of its turn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mast_trace import semconv
from mast_trace_instrumentations.langgraph import reading
from mast_trace_instrumentations.langgraph.state import GraphScope, NodeScope

if TYPE_CHECKING:
    from mast_trace.messages import Message


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
