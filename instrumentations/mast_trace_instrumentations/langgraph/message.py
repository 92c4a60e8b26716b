"""Messages on their way from the node that writes them to the agents that come next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from mast_trace import semconv

if TYPE_CHECKING:
    from mast_trace.spans import Telemetry
    from mast_trace_instrumentations.langgraph.state import PendingMessage


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
