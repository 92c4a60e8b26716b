"""Calls of models."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mast_trace.messages import Message
from mast_trace.spans import NO_RESULT, Inside

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mast_trace.spans import Call, Telemetry


def begin_chat(telemetry: Telemetry, model: Any, messages: Sequence[dict[str, str]]) -> Call:
    """Begin a call of ``model`` on all messages of the request, in order."""
    shown = [Message(each["content"], role=each["role"]) for each in messages]
    chat = telemetry.chat(model.name, provider="toy", input=shown)

    def end(result: Any, error: BaseException | None) -> None:
        if result is not NO_RESULT:
            chat.response(
                Message(result["text"], role="assistant"),
                input_tokens=result["input_tokens"],
                output_tokens=result["output_tokens"],
            )
        chat.end(error)

    return Inside(chat.context, end)
