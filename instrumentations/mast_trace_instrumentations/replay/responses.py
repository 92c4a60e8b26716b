"""OpenAI's Responses API: reads requests and encodes recorded answers."""

from __future__ import annotations

import itertools
import json
from typing import TYPE_CHECKING, Any

from mast_trace.content import as_text
from mast_trace_instrumentations.openai.requests import responses_messages as messages
from mast_trace_instrumentations.replay.encoding import Encoded, event

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from mast_trace.messages import Message
    from mast_trace.replay.tape import Exchange

__all__ = ["encode", "messages"]


def encode(request: Mapping[str, Any], exchange: Exchange, said: Message, number: int) -> Encoded:
    """Encode an answer as one JSON object, or as the events of a stream."""
    output: list[dict[str, Any]] = []
    if said.content:
        part = {"type": "output_text", "text": said.content, "annotations": []}
        output.append(
            {
                "type": "message",
                "id": f"msg_replayed_{number}",
                "role": "assistant",
                "status": "completed",
                "content": [part],
            }
        )
    for place, call in enumerate(said.tool_calls):
        output.append(
            {
                "type": "function_call",
                "id": f"fc_replayed_{number}_{place}",
                "call_id": call.id or f"call_replayed_{number}_{place}",
                "name": call.name,
                "arguments": "{}" if call.arguments is None else as_text(call.arguments),
                "status": "completed",
            }
        )
    cut = exchange.finish_reason in {"length", "content_filter"}
    reason = {"length": "max_output_tokens"}.get(exchange.finish_reason, exchange.finish_reason)
    whole = {
        "id": f"resp_replayed_{number}",
        "object": "response",
        "created_at": 0,
        "status": "incomplete" if cut else "completed",
        "incomplete_details": {"reason": reason} if cut else None,
        "model": exchange.model or str(request.get("model", "")),
        "output": output,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
    }
    if request.get("stream"):
        return Encoded("".join(_events(whole)), stream=True)
    return Encoded(json.dumps(whole))


def _events(whole: dict[str, Any]) -> Iterator[str]:
    numbers = itertools.count()

    def one(kind: str, **more: Any) -> str:
        return event({"type": kind, "sequence_number": next(numbers), **more}, named=True)

    yield one("response.created", response={**whole, "status": "in_progress", "output": []})
    for place, item in enumerate(whole["output"]):
        yield one("response.output_item.added", output_index=place, item=item)
        for part in item.get("content", ()):
            where = {"output_index": place, "content_index": 0, "item_id": item["id"]}
            yield one("response.output_text.delta", delta=part["text"], logprobs=[], **where)
        yield one("response.output_item.done", output_index=place, item=item)
    yield one(f"response.{whole['status']}", response=whole)
