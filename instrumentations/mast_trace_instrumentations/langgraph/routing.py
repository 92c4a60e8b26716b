"""Routing after a node: the reason for the next nodes, who chose them, and the messages on their way."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mast_trace import semconv
from mast_trace_instrumentations.langgraph.state import (
    GraphScope,
    NodeScope,
    PendingMessage,
    current_scope,
)

if TYPE_CHECKING:
    from opentelemetry.context import Context

    from mast_trace.spans import Telemetry

_BRANCH = "branch:to:"
_JOIN = "join:"
_SENDS = "__pregel_tasks"


def next_nodes(writes: Iterable[tuple[str, Any]]) -> list[str]:
    """Return the next nodes according to a node's writes: edges, conditions, `Command` and `Send`."""
    nodes: list[str] = []
    for channel, value in writes:
        if channel.startswith(_BRANCH):
            nodes.append(channel[len(_BRANCH) :])
        elif channel == _SENDS:
            nodes.append(str(value.node))
        elif channel.startswith(_JOIN):
            nodes.append(channel.rpartition(":")[2])
    return list(dict.fromkeys(nodes))


def is_command(value: Any) -> bool:
    """Return whether ``value`` is LangGraph's `Command`."""
    return type(value).__name__ == "Command"


def goals_of(command: Any) -> Sequence[Any]:
    """Return the targets of a `Command`: names of nodes, and `Send`."""
    goto = command.goto
    return goto if isinstance(goto, list | tuple) else [goto]


def commanded_nodes(*given: Any) -> list[str]:
    """Return the target nodes of the `Command` objects among ``given``, and in lists of them."""
    items = [i for value in given for i in (value if isinstance(value, list | tuple) else [value])]
    goals = [goal for item in items if is_command(item) for goal in goals_of(item)]
    names = [goal if isinstance(goal, str) else getattr(goal, "node", "") for goal in goals]
    return list(dict.fromkeys(filter(None, names)))


def handoff_of(scope: NodeScope, node: str, led_to: Sequence[str], returned: Any) -> dict[str, str]:
    """Return the attributes of the hand-off by which a node's agent gave control to other agents.

    The hand-off is a `Command` of the node or of a graph inside of it. A `Command` that a tool
    returned is on the span of the tool. Where the node's result is not known (streamed events), a
    target without an edge was reached by a `Command`.
    """
    shape = scope.graph.shape
    if scope.handed_off or scope.caller is not None or scope.graph.agent:
        return {}
    if node in shape.tool_nodes:
        return {}
    commanded = set(commanded_nodes(returned, scope.command))
    if node not in shape.branching:
        commanded |= set(led_to) - shape.fixed.get(node, frozenset())
    targets = [shape.speakers[goal] for goal in led_to if goal in commanded & set(shape.speakers)]
    others = [target for target in dict.fromkeys(targets) if target != scope.agent]
    if not others:
        return {}
    return {semconv.HANDOFF_SOURCE: scope.agent, semconv.HANDOFF_TARGET: ", ".join(others)}


def note_named(names: Iterable[str], context: Context) -> None:
    """Note the names in the structured output of a model call in ``context``.

    They concern the node in which the model is called, and the nodes around an agent that is called
    there; not the nodes around a tool, whose code decided by a result of its own.
    """
    scope = current_scope(context)
    while scope is not None:
        if isinstance(scope, NodeScope):
            scope.named.update(names)
            scope = scope.graph.outer
        else:
            scope = scope.outer if isinstance(scope, GraphScope) else None


def chosen_by_model(scope: NodeScope, node: str, led_to: Sequence[str]) -> bool:
    """Return whether a model is known to have chosen the next agents.

    A tool of the model handed over, or the structured output of a model call in the same step names
    exactly the agents that come next, and no unconditional edge of the graph leads to any of them.
    Where the output names others as well, or none, code may have chosen.
    """
    if scope.handed_off:
        return True
    shape = scope.graph.shape
    if not scope.named or not led_to or any(n in shape.fixed.get(node, ()) for n in led_to):
        return False
    agents = {**{agent: agent for agent in shape.speakers.values()}, **shape.speakers}
    named = {agents[name] for name in scope.named if name in agents}
    chosen = {shape.speakers.get(goal, goal) for goal in led_to}
    return bool(named) and (named == chosen or named - {scope.agent} == chosen)


def utter(
    telemetry: Telemetry,
    queue: Sequence[PendingMessage],
    recipients: Sequence[str] = (),
    in_reply_to: str | None = None,
    handoff: Mapping[str, str] | None = None,
) -> None:
    """Record messages. The recipients get the agent's last message.

    The agent wrote the earlier ones while it worked: they have no recipients. Text that the
    framework adds in the agent's name ("Transferring back to ...") does not count as the agent's
    message.

    Args:
        telemetry: makes the spans.
        queue: the messages, in order.
        recipients: the agents that come next.
        in_reply_to: id of the answered message, for messages that do not hold it themselves.
        handoff: attributes of the hand-off that accompanies the last message.
    """
    last = queue.index(answer_of(queue)) if queue else 0
    for index, each in enumerate(queue):
        telemetry.message(
            each.sender,
            recipients if index >= last else (),
            each.message,
            parent=each.context,
            in_reply_to=each.in_reply_to or in_reply_to,
            attributes={
                **({semconv.MESSAGE_SYNTHETIC: True} if each.synthetic else {}),
                **((handoff or {}) if index == last else {}),
            },
            timestamp=each.at,
        )


def answer_of(queue: Sequence[PendingMessage]) -> PendingMessage:
    """Return the last message that an agent wrote itself, else the last one."""
    return next((each for each in reversed(queue) if not each.synthetic), queue[-1])
