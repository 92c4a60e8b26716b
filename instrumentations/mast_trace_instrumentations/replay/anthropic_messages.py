"""Anthropic's Messages API: reads requests and encodes recorded answers."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from mast_trace.messages import Message, ToolCall, parsed
from mast_trace_instrumentations.anthropic.requests import messages
from mast_trace_instrumentations.model_calls.call import CHARS
from mast_trace_instrumentations.replay.encoding import Encoded, cut, event, extra_of

if TYPE_CHECKING:
    from mast_trace.replay.tape import Exchange

__all__ = ["encode", "messages"]

_NOTHING_SPENT = {"input_tokens": 0, "output_tokens": 0}


def encode(request: Mapping[str, Any], exchange: Exchange, said: Message, number: int) -> Encoded:
    """Encode an answer as one JSON object, or as the events of a stream; with a usage of 0 tokens."""
    extra = extra_of(exchange)
    blocks = _blocks(extra.get("content"), said, number)
    whole = {
        "id": f"msg_replayed_{number}",
        "type": "message",
        "role": "assistant",
        "model": exchange.model or str(request.get("model", "")),
        "content": blocks,
        "stop_reason": exchange.finish_reason or ("tool_use" if said.tool_calls else "end_turn"),
        "stop_sequence": extra.get("stop_sequence"),
        "usage": _NOTHING_SPENT,
    }
    if request.get("stream"):
        return Encoded("".join(_events(whole)), stream=True)
    return Encoded(json.dumps(whole))


def _blocks(recorded: Any, said: Message, number: int) -> list[dict[str, Any]]:
    """Return the blocks of an answer: the recorded ones with text and calls in place, if they fit."""
    calls = [_call(call, number, place) for place, call in enumerate(said.tool_calls)]
    plain = [{"type": "text", "text": said.content}] if said.content else []
    if not isinstance(recorded, list) or not all(isinstance(each, dict) for each in recorded):
        return [*plain, *calls]
    texts = cut(
        said.content, [each.get(CHARS) for each in recorded if each.get("type") != "tool_use"]
    )
    if texts is None or len(recorded) - len(texts) != len(calls):
        return [*plain, *calls]
    blocks: list[dict[str, Any]] = []
    for each in recorded:
        if each.get("type") == "tool_use":
            blocks.append(calls.pop(0))
            continue
        text = texts.pop(0)
        kept = {key: value for key, value in each.items() if key != CHARS}
        blocks.append({**kept, "text": text} if each.get("type") == "text" else _whole(kept))
    return blocks


def _whole(block: dict[str, Any]) -> dict[str, Any]:
    """Return a block with the fields that its type needs, which a record leaves out where they are empty."""
    needed = {"thinking": ("thinking", "signature"), "redacted_thinking": ("data",)}
    missing = dict.fromkeys(needed.get(str(block.get("type")), ()), "")
    given: dict[str, Any] = {"input": {}} if block.get("type") == "server_tool_use" else {}
    return {**missing, **given, **block}


def _call(call: ToolCall, number: int, place: int) -> dict[str, Any]:
    given = parsed(call.arguments)
    return {
        "type": "tool_use",
        "id": call.id or f"toolu_replayed_{number}_{place}",
        "name": call.name,
        "input": given if isinstance(given, dict) else {},
    }


def _begun(block: dict[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the beginning of a block in a stream, and the deltas that complete it."""
    kind = block["type"]
    if kind == "text":
        deltas = [{"type": "text_delta", "text": block["text"]}]
        cited = block.get("citations") or ()
        deltas += [{"type": "citations_delta", "citation": each} for each in cited]
        return {**block, "text": "", **({"citations": []} if cited else {})}, deltas
    if kind == "thinking":
        return {**block, "thinking": "", "signature": ""}, [
            {"type": "thinking_delta", "thinking": block["thinking"]},
            {"type": "signature_delta", "signature": block["signature"]},
        ]
    if kind in {"tool_use", "server_tool_use"}:
        written = json.dumps(block["input"])
        return {**block, "input": {}}, [{"type": "input_json_delta", "partial_json": written}]
    return block, []


def _events(whole: dict[str, Any]) -> Iterator[str]:
    def one(kind: str, **more: Any) -> str:
        return event({"type": kind, **more}, named=True)

    yield one("message_start", message={**whole, "content": [], "stop_reason": None})
    for index, block in enumerate(whole["content"]):
        empty, deltas = _begun(block)
        yield one("content_block_start", index=index, content_block=empty)
        for delta in deltas:
            yield one("content_block_delta", index=index, delta=delta)
        yield one("content_block_stop", index=index)
    ending = {key: whole[key] for key in ("stop_reason", "stop_sequence")}
    yield one("message_delta", delta=ending, usage=_NOTHING_SPENT)
    yield one("message_stop")
