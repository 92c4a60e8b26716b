"""OpenAI's Responses API: reads requests and encodes recorded answers."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from mast_trace.content import as_text
from mast_trace_instrumentations.model_calls.call import CHARS
from mast_trace_instrumentations.openai.requests import responses_messages as messages
from mast_trace_instrumentations.replay.encoding import Encoded, cut, event, extra_of

if TYPE_CHECKING:
    from mast_trace.messages import Message, ToolCall
    from mast_trace.replay.tape import Exchange

__all__ = ["encode", "messages"]

_TEXT = {"type": "output_text", "annotations": []}
_GROWING = {"message", "reasoning"}
"""Types of items whose lists grow in a stream."""


def encode(request: Mapping[str, Any], exchange: Exchange, said: Message, number: int) -> Encoded:
    """Encode an answer as one JSON object, or as the events of a stream."""
    output = _output(extra_of(exchange).get("output"), said, number)
    is_cut = exchange.finish_reason in {"length", "content_filter"}
    reason = {"length": "max_output_tokens"}.get(exchange.finish_reason, exchange.finish_reason)
    whole = {
        "id": f"resp_replayed_{number}",
        "object": "response",
        "created_at": 0,
        "status": "incomplete" if is_cut else "completed",
        "incomplete_details": {"reason": reason} if is_cut else None,
        "model": exchange.model or str(request.get("model", "")),
        "output": output,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
    }
    if request.get("stream"):
        return Encoded("".join(_events(whole)), stream=True)
    return Encoded(json.dumps(whole))


def _output(recorded: Any, said: Message, number: int) -> list[dict[str, Any]]:
    """Return the items of an answer: the recorded ones with text and calls in place, if they fit."""
    calls = [_call(call, number, place) for place, call in enumerate(said.tool_calls)]
    plain = [_message({}, [{**_TEXT, "text": said.content}], number)] if said.content else []
    if not isinstance(recorded, list) or not all(isinstance(each, dict) for each in recorded):
        return [*plain, *calls]
    messages = [each for each in recorded if each.get("type") == "message"]
    parts = [part for each in messages for part in each.get("content", ())]
    texts = cut(said.content, [part.get(CHARS) for part in parts])
    asked = sum(each.get("type") == "function_call" for each in recorded)
    if texts is None or asked != len(calls):
        return [*plain, *calls]
    output: list[dict[str, Any]] = []
    for each in recorded:
        if each.get("type") == "function_call":
            output.append({**calls.pop(0), **each})
        elif each.get("type") == "message":
            filled = [_part(part, texts.pop(0)) for part in each.get("content", ())]
            output.append(_message(each, filled, number))
        else:
            missing: dict[str, Any] = {"summary": []} if each.get("type") == "reasoning" else {}
            output.append({**missing, **each})
    return output


def _message(recorded: dict[str, Any], parts: list[dict[str, Any]], number: int) -> dict[str, Any]:
    return {
        "type": "message",
        "id": f"msg_replayed_{number}",
        "role": "assistant",
        "status": "completed",
        **recorded,
        "content": parts,
    }


def _part(recorded: dict[str, Any], text: str) -> dict[str, Any]:
    kept = {key: value for key, value in recorded.items() if key != CHARS}
    if kept.get("type") == "refusal":
        return {**kept, "refusal": text}
    return {**_TEXT, **kept, "text": text}


def _call(call: ToolCall, number: int, place: int) -> dict[str, Any]:
    return {
        "type": "function_call",
        "id": f"fc_replayed_{number}_{place}",
        "call_id": call.id or f"call_replayed_{number}_{place}",
        "name": call.name,
        "arguments": "{}" if call.arguments is None else as_text(call.arguments),
        "status": "completed",
    }


def _events(whole: dict[str, Any]) -> Iterator[str]:
    numbers = itertools.count()

    def one(kind: str, **more: Any) -> str:
        return event({"type": kind, "sequence_number": next(numbers), **more}, named=True)

    yield one("response.created", response={**whole, "status": "in_progress", "output": []})
    for place, item in enumerate(whole["output"]):
        begun: dict[str, Any] = {
            key: [] for key in ("content", "summary") if item["type"] in _GROWING and key in item
        }
        begun |= {"arguments": ""} if item["type"] == "function_call" else {}
        yield one("response.output_item.added", output_index=place, item={**item, **begun})
        for kind, more in _deltas(item):
            yield one(kind, output_index=place, item_id=item.get("id", ""), **more)
        yield one("response.output_item.done", output_index=place, item=item)
    yield one(f"response.{whole['status']}", response=whole)


def _deltas(item: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the events that complete an item of a stream: type and fields."""
    if item["type"] == "function_call":
        arguments = {"arguments": item["arguments"], "name": item["name"]}
        yield "response.function_call_arguments.delta", {"delta": item["arguments"]}
        yield "response.function_call_arguments.done", arguments
    elif item["type"] == "message":
        for place, part in enumerate(item["content"]):
            yield from _of_part(part, {"content_index": place})
    elif item["type"] == "reasoning":
        for place, part in enumerate(item["summary"]):
            where = {"summary_index": place}
            name, text = "response.reasoning_summary", part.get("text", "")
            yield f"{name}_part.added", {**where, "part": {**part, "text": ""}}
            yield f"{name}_text.delta", {**where, "delta": text}
            yield f"{name}_text.done", {**where, "text": text}
            yield f"{name}_part.done", {**where, "part": part}


def _of_part(part: dict[str, Any], where: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    if part["type"] == "refusal":
        yield "response.content_part.added", {**where, "part": {**part, "refusal": ""}}
        yield "response.refusal.delta", {**where, "delta": part["refusal"]}
        yield "response.refusal.done", {**where, "refusal": part["refusal"]}
    else:
        begun = {**part, "text": "", "annotations": []}
        yield "response.content_part.added", {**where, "part": begun}
        yield "response.output_text.delta", {**where, "delta": part["text"], "logprobs": []}
        for place, note in enumerate(part["annotations"]):
            named = {"annotation_index": place, "annotation": note}
            yield "response.output_text.annotation.added", {**where, **named}
        yield "response.output_text.done", {**where, "text": part["text"], "logprobs": []}
    yield "response.content_part.done", {**where, "part": part}
