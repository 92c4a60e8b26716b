"""Anthropic's Messages, as its API and the streaming of it spell them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from scripted_protocols.server import Request, ScriptedAnswer, pieces_of, size_of

if TYPE_CHECKING:
    from collections.abc import Iterator

FRESH = 7
"""Tokens of each input that are beside the cache."""


class AnthropicMessages:
    """The provider."""

    @staticmethod
    def streams(path: str, request: Request) -> bool:
        """By a field of the request; with Bedrock and Vertex, by the path."""
        return bool(request.get("stream")) or "stream" in path

    @staticmethod
    def whole(path: str, request: Request, answer: ScriptedAnswer, number: int) -> dict[str, Any]:
        """A message, or a count of tokens."""
        if path.endswith("count_tokens"):
            return {"input_tokens": FRESH}
        blocks: list[dict[str, Any]] = []
        if answer.thinking:
            blocks.append({"type": "thinking", "thinking": answer.thinking, "signature": "s"})
        if answer.text:
            blocks.append({"type": "text", "text": answer.text})
        blocks += [
            {
                "type": "tool_use",
                "id": call.id or f"toolu_{number}_{place}",
                "name": call.name,
                "input": call.arguments,
            }
            for place, call in enumerate(answer.calls)
        ]
        return {
            "id": f"msg_{number}",
            "type": "message",
            "role": "assistant",
            "model": f"{request.get('model', 'scripted')}-1",
            "content": blocks,
            "stop_reason": "tool_use" if answer.calls else "end_turn",
            "stop_sequence": None,
            "usage": {
                "input_tokens": FRESH,
                "cache_read_input_tokens": answer.cached,
                "cache_creation_input_tokens": answer.stored,
                "output_tokens": size_of(blocks),
            },
        }

    @classmethod
    def events(
        cls, path: str, request: Request, answer: ScriptedAnswer, number: int
    ) -> Iterator[bytes]:
        """Start, the blocks in pieces, and the end with the last counts."""
        whole = cls.whole(path, request, answer, number)
        usage = whole["usage"]
        begun = {
            **whole,
            "content": [],
            "stop_reason": None,
            "usage": {**usage, "output_tokens": 1},
        }
        yield _event("message_start", message=begun)
        yield _event("ping")
        for index, block in enumerate(whole["content"]):
            empty, deltas = _in_pieces(block)
            yield _event("content_block_start", index=index, content_block=empty)
            for delta in deltas:
                yield _event("content_block_delta", index=index, delta=delta)
            yield _event("content_block_stop", index=index)
        yield _event(
            "message_delta",
            delta={key: whole[key] for key in ("stop_reason", "stop_sequence")},
            usage={"output_tokens": usage["output_tokens"]},
        )
        yield _event("message_stop")

    @staticmethod
    def error(status: int, text: str) -> dict[str, Any]:
        """An error."""
        kind = "invalid_request_error" if status < 500 else "api_error"
        return {"type": "error", "error": {"type": kind, "message": text}}


def as_chat(request: Request) -> dict[str, Any]:
    """The messages of a request in the words of Chat Completions, for comparison."""
    shown: list[dict[str, Any]] = []
    if request.get("system"):
        shown.append({"role": "system", "content": _text(request["system"])})
    for message in request["messages"]:
        blocks = message["content"]
        if isinstance(blocks, str):
            shown.append(message)
            continue
        shown += [
            {"role": "tool", "tool_call_id": b["tool_use_id"], "content": _text(b["content"])}
            for b in blocks
            if b["type"] == "tool_result"
        ]
        calls = [
            {"id": b["id"], "function": {"name": b["name"], "arguments": json.dumps(b["input"])}}
            for b in blocks
            if b["type"] == "tool_use"
        ]
        texts = [b for b in blocks if b["type"] == "text"]
        if texts or calls:
            shown.append({"role": message["role"], "content": _text(texts), "tool_calls": calls})
    return {"messages": shown}


def _text(content: Any) -> str:
    return content if isinstance(content, str) else "".join(part["text"] for part in content)


def _in_pieces(block: dict[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    if block["type"] == "text":
        deltas = [{"type": "text_delta", "text": piece} for piece in pieces_of(block["text"])]
        cited = block.get("citations") or ()
        deltas += [{"type": "citations_delta", "citation": each} for each in cited]
        return {**block, "text": "", **({"citations": []} if cited else {})}, deltas
    if block["type"] == "thinking":
        deltas = [
            {"type": "thinking_delta", "thinking": piece} for piece in pieces_of(block["thinking"])
        ]
        signed = {"type": "signature_delta", "signature": block["signature"]}
        return {**block, "thinking": "", "signature": ""}, [*deltas, signed]
    if "input" not in block:
        return block, []
    pieces = pieces_of(json.dumps(block["input"]))
    return {**block, "input": {}}, [
        {"type": "input_json_delta", "partial_json": piece} for piece in pieces
    ]


def _event(kind: str, **more: Any) -> bytes:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **more})}\n\n".encode()
