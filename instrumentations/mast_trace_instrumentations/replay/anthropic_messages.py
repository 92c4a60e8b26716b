"""Anthropic's Messages API: reads requests and encodes recorded answers."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from mast_trace.messages import parsed
from mast_trace_instrumentations.anthropic.requests import messages
from mast_trace_instrumentations.replay.encoding import Encoded, event

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from mast_trace.messages import Message
    from mast_trace.replay.tape import Exchange

__all__ = ["encode", "messages"]

_NOTHING_SPENT = {"input_tokens": 0, "output_tokens": 0}


def encode(request: Mapping[str, Any], exchange: Exchange, said: Message, number: int) -> Encoded:
    """Encode an answer as one JSON object, or as the events of a stream; with a usage of 0 tokens."""
    blocks: list[dict[str, Any]] = []
    if said.content:
        blocks.append({"type": "text", "text": said.content})
    for place, call in enumerate(said.tool_calls):
        given = parsed(call.arguments)
        blocks.append(
            {
                "type": "tool_use",
                "id": call.id or f"toolu_replayed_{number}_{place}",
                "name": call.name,
                "input": given if isinstance(given, dict) else {},
            }
        )
    whole = {
        "id": f"msg_replayed_{number}",
        "type": "message",
        "role": "assistant",
        "model": exchange.model or str(request.get("model", "")),
        "content": blocks,
        "stop_reason": exchange.finish_reason or ("tool_use" if said.tool_calls else "end_turn"),
        "stop_sequence": None,
        "usage": _NOTHING_SPENT,
    }
    if request.get("stream"):
        return Encoded("".join(_events(whole)), stream=True)
    return Encoded(json.dumps(whole))


def _events(whole: dict[str, Any]) -> Iterator[str]:
    def one(kind: str, **more: Any) -> str:
        return event({"type": kind, **more}, named=True)

    yield one("message_start", message={**whole, "content": [], "stop_reason": None})
    for index, block in enumerate(whole["content"]):
        if block["type"] == "text":
            empty, delta = {**block, "text": ""}, {"type": "text_delta", "text": block["text"]}
        else:
            written = json.dumps(block["input"])
            empty, delta = (
                {**block, "input": {}},
                {"type": "input_json_delta", "partial_json": written},
            )
        yield one("content_block_start", index=index, content_block=empty)
        yield one("content_block_delta", index=index, delta=delta)
        yield one("content_block_stop", index=index)
    ending = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    yield one("message_delta", delta=ending, usage=_NOTHING_SPENT)
    yield one("message_stop")
