"""Messages on their way from the node that writes them to the agents that get the word next."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mast_trace import semconv

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mast_trace.spans import Telemetry
    from mast_trace_instrumentations.langgraph.state import Said

_BRANCH = "branch:to:"
_JOIN = "join:"
_SENDS = "__pregel_tasks"


def next_nodes(writes: Iterable[tuple[str, Any]]) -> list[str]:
    """Return the nodes to which a node's writes lead: edges, conditions, `Command` and `Send`."""
    nodes: list[str] = []
    for channel, value in writes:
        if channel.startswith(_BRANCH):
            nodes.append(channel[len(_BRANCH) :])
        elif channel == _SENDS:
            nodes.append(str(value.node))
        elif channel.startswith(_JOIN):
            nodes.append(channel.rpartition(":")[2])
    return list(dict.fromkeys(nodes))


def utter(
    telemetry: Telemetry,
    queue: Sequence[Said],
    recipients: Sequence[str] = (),
    in_reply_to: str | None = None,
) -> None:
    """Record what was said. The last words of an agent are those that the recipients get.

    The earlier ones were spoken while the agent worked: nobody was given the word by them. What
    the framework adds in the agent's name ("Transferring back to ...") does not count as its words.
    """
    last = queue.index(answer_of(queue)) if queue else 0
    for index, said in enumerate(queue):
        telemetry.message(
            said.sender,
            recipients if index >= last else (),
            said.message,
            parent=said.context,
            in_reply_to=said.in_reply_to or in_reply_to,
            attributes={semconv.MESSAGE_SYNTHETIC: True} if said.synthetic else None,
            timestamp=said.at,
        )


def answer_of(queue: Sequence[Said]) -> Said:
    """Return the last message that an agent wrote itself, else the last one."""
    return next((said for said in reversed(queue) if not said.synthetic), queue[-1])
