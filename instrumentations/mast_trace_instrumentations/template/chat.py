"""Calls of models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mast_trace.messages import Message
from mast_trace.spans import Call, Telemetry, in_span


def begin_chat(telemetry: Telemetry, model: Any, messages: Sequence[dict[str, str]]) -> Call:
    """Begin a call of ``model`` on all messages of the request, in order."""
    shown = [Message(each["content"], role=each["role"]) for each in messages]
    chat = telemetry.chat(model.name, provider="toy", input=shown)

    def answered(answer: Any) -> None:
        chat.response(
            Message(answer["text"], role="assistant"),
            input_tokens=answer["input_tokens"],
            output_tokens=answer["output_tokens"],
        )

    return in_span(chat, answered)
