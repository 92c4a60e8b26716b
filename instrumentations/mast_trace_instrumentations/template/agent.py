"""Turns of agents, on the messages that they see."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mast_trace.messages import Message
from mast_trace.spans import Call, Telemetry, in_span


def begin_turn(telemetry: Telemetry, agent: Any, history: Sequence[tuple[str, str]]) -> Call:
    """Begin a turn of ``agent`` on its history: pairs of a sender and a text."""
    seen = [Message(text, role="user", name=sender) for sender, text in history]
    turn = telemetry.agent(agent.name, input=seen)
    return in_span(turn, lambda result: turn.reply(Message(str(result), role="assistant")))
