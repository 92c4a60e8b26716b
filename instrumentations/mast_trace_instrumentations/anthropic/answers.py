"""Answers of the model, whole or streamed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from mast_trace.messages import Message, ToolCall, parsed
from mast_trace_instrumentations.anthropic.requests import text_of, tool_call
from mast_trace_instrumentations.model_calls import Answer, field
from mast_trace_instrumentations.model_calls.call import CHARS, left, plain

_CALL, _TEXT = "tool_use", "text"
_OF_TEXT: Final = ("text", "parsed_output")
_GROWING: Final = ("thinking", "signature")
"""Fields of blocks that the deltas of a stream continue."""

PARTIAL: Final = "partial_json"
"""Field of a block whose input is still being streamed."""


def message_extra(blocks: Sequence[Any], stop_sequence: Any) -> dict[str, Any]:
    """Return the blocks of a message in order, texts and calls aside, and the sequence that ended it.

    The blocks are left out where they are a text, followed by calls: text and calls say it all.
    """
    kept = [_block(each) for each in blocks]
    texts = [each for each in kept if each.get("type") != _CALL]
    is_plain = texts == kept[: len(texts)] and len(texts) <= 1
    is_plain = is_plain and all(set(each) == {"type", CHARS} for each in texts)
    is_plain = is_plain and all(each["type"] == _TEXT for each in texts)
    found: dict[str, Any] = {} if is_plain else {"content": kept}
    return found | ({"stop_sequence": stop_sequence} if stop_sequence else {})


def _block(block: Any) -> dict[str, Any]:
    kind = field(block, "type")
    if kind == _CALL:
        return {"type": _CALL}
    if kind == _TEXT:
        return left(block, _OF_TEXT) | {CHARS: len(text_of([block]))}
    whole = plain(block)
    return (whole if isinstance(whole, dict) else {}) | {CHARS: len(text_of([block]))}


class Blocks:
    """Assembles the blocks of a streamed message, as far as extras need them."""

    def __init__(self) -> None:
        self._blocks: dict[int, dict[str, Any]] = {}

    def begin(self, index: int, block: Any) -> None:
        """Take the beginning of a block."""
        begun = plain(block)
        self._blocks[index] = begun if isinstance(begun, dict) else {}

    def add(self, index: int, delta: Any) -> None:
        """Take the next delta of a block."""
        block = self._blocks.get(index)
        if block is None:
            return
        for name in (_TEXT, *_GROWING):
            piece = field(delta, name)
            if isinstance(piece, str):
                block[name] = str(block.get(name) or "") + piece
        citation = field(delta, "citation")
        if citation is not None:
            block["citations"] = [*(block.get("citations") or ()), plain(citation)]
        written = field(delta, "partial_json")
        if isinstance(written, str) and block.get("type") != _CALL:
            block[PARTIAL] = str(block.get(PARTIAL) or "") + written

    def all(self) -> list[dict[str, Any]]:
        """Return the blocks so far, in order."""
        return [_with_input(block) for _, block in sorted(self._blocks.items())]


def _with_input(block: dict[str, Any]) -> dict[str, Any]:
    if PARTIAL not in block:
        return block
    kept = {key: value for key, value in block.items() if key != PARTIAL}
    return kept | {"input": parsed(block[PARTIAL])}


def message_answer(message: Any) -> Answer:
    """Read a `Message` of the client, or the body that it is made of."""
    blocks = field(message, "content") or ()
    calls = tuple(tool_call(block) for block in blocks if field(block, "type") == "tool_use")
    texts = [block for block in blocks if field(block, "type") != "tool_use"]
    about = {
        "model": field(message, "model"),
        "response_id": field(message, "id"),
        "finish_reason": field(message, "stop_reason"),
        **tokens(field(message, "usage")),
    }
    if extra := message_extra(blocks, field(message, "stop_sequence")):
        about["extra"] = extra
    return Answer(Message(text_of(texts), tool_calls=calls), about)


def tokens(usage: Any) -> dict[str, Any]:
    """Read token counts. The client's input tokens exclude cached ones; ours include them."""
    if usage is None:
        return {}
    fresh = field(usage, "input_tokens")
    read = field(usage, "cache_read_input_tokens")
    written = field(usage, "cache_creation_input_tokens")
    counts = {
        "input_tokens": None if fresh is None else fresh + (read or 0) + (written or 0),
        "output_tokens": field(usage, "output_tokens"),
        "cached_tokens": read,
        "cache_write_tokens": written,
    }
    return {name: count for name, count in counts.items() if count is not None}


class MessageAssembly:
    """Assembles a streamed message from its events."""

    def __init__(self) -> None:
        self._about: dict[str, Any] = {}
        self._usage: dict[str, Any] = {}
        self._texts: list[str] = []
        self._calls: dict[int, tuple[Any, list[str]]] = {}
        self._blocks = Blocks()
        self._stop_sequence: Any = None

    def add(self, event: Any) -> None:
        """Take the next event."""
        kind = field(event, "type")
        if kind == "message_start":
            started = field(event, "message")
            self._about = {"model": field(started, "model"), "response_id": field(started, "id")}
            self._count(field(started, "usage"))
        elif kind == "content_block_start":
            block = field(event, "content_block")
            self._blocks.begin(field(event, "index"), block)
            if field(block, "type") == "tool_use":
                self._calls[field(event, "index")] = (block, [])
            else:
                self._texts.append(text_of([block]))
        elif kind == "content_block_delta":
            delta = field(event, "delta")
            self._blocks.add(field(event, "index"), delta)
            self._texts.append(field(delta, "text") or "")
            _, pieces = self._calls.get(field(event, "index"), (None, []))
            pieces.append(field(delta, "partial_json") or "")
        elif kind == "message_delta":
            self._about["finish_reason"] = field(field(event, "delta"), "stop_reason")
            self._stop_sequence = field(field(event, "delta"), "stop_sequence")
            self._count(field(event, "usage"))

    def answer(self) -> Answer:
        """Return the answer received so far."""
        if not self._about:
            return Answer()
        calls = tuple(
            ToolCall(call.name, "".join(pieces) or call.arguments, call.id)
            for _, (block, pieces) in sorted(self._calls.items())
            for call in [tool_call(block)]
        )
        about = {**self._about, **tokens(self._usage)}
        if extra := message_extra(self._blocks.all(), self._stop_sequence):
            about["extra"] = extra
        return Answer(Message("".join(self._texts), tool_calls=calls), about)

    def _count(self, usage: Any) -> None:
        """Take the newest count of each kind; later events repeat only some of them."""
        for name in (
            "input_tokens",
            "output_tokens",
            "cache_read_input_tokens",
            "cache_creation_input_tokens",
        ):
            count = field(usage, name)
            if count is not None:
                self._usage[name] = count
