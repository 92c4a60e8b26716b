"""Messages between agents."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mast_trace.messages import Message

if TYPE_CHECKING:
    from mast_trace.spans import Telemetry


def record_message(telemetry: Telemetry, sender: str, recipient: str, text: str) -> None:
    """Record a message: a span without duration, so there is nothing to end."""
    telemetry.message(sender, [recipient], Message(text, role="assistant"))
