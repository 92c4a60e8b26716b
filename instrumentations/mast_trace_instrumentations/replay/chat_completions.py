"""OpenAI's Chat Completions API: reads requests and encodes recorded answers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from mast_trace.content import as_text
from mast_trace_instrumentations.openai.requests import chat_messages as messages
from mast_trace_instrumentations.replay.encoding import Encoded, event, extra_of

if TYPE_CHECKING:
    from mast_trace.messages import Message
    from mast_trace.replay.tape import Exchange

__all__ = ["encode", "messages"]

_KNOWN = {"role", "content", "tool_calls"}
"""Fields of a message that chunks of their own hold."""


def encode(request: Mapping[str, Any], exchange: Exchange, said: Message, number: int) -> Encoded:
    """Encode an answer as one JSON object, or as the events of a stream.

    It has no token usage, because no model was called.
    """
    message: dict[str, Any] = {"role": "assistant", "content": said.content or None}
    extra = extra_of(exchange).get("message")
    if isinstance(extra, dict):
        message = {**extra, **message}
        if extra.get("refusal") == said.content:
            message["content"] = None
    if said.tool_calls:
        message["tool_calls"] = [
            {
                "id": call.id or f"call_replayed_{number}_{place}",
                "type": "function",
                "function": {"name": call.name, "arguments": _arguments(call.arguments)},
            }
            for place, call in enumerate(said.tool_calls)
        ]
    finish = exchange.finish_reason or ("tool_calls" if said.tool_calls else "stop")
    base = {
        "id": f"chatcmpl-replayed-{number}",
        "created": 0,
        "model": exchange.model or str(request.get("model", "")),
    }
    if request.get("stream"):
        return Encoded(_stream(base, message, finish), stream=True)
    choice = {"index": 0, "message": message, "finish_reason": finish}
    return Encoded(json.dumps({**base, "object": "chat.completion", "choices": [choice]}))


def _stream(base: dict[str, Any], message: dict[str, Any], finish: str) -> str:
    def chunk(delta: dict[str, Any], reason: str | None = None) -> str:
        choice = {"index": 0, "delta": delta, "finish_reason": reason}
        return event({**base, "object": "chat.completion.chunk", "choices": [choice]})

    extra = {key: value for key, value in message.items() if key not in _KNOWN}
    calls = [{"index": place, **call} for place, call in enumerate(message.get("tool_calls", ()))]
    return "".join(
        [
            chunk({"role": "assistant", "content": ""}),
            *(chunk({key: value}) for key, value in extra.items()),
            chunk({"content": message["content"]}) if message["content"] else "",
            *(chunk({"tool_calls": [call]}) for call in calls),
            chunk({}, finish),
            "data: [DONE]\n\n",
        ]
    )


def _arguments(arguments: Any) -> str:
    return "{}" if arguments is None else as_text(arguments)
