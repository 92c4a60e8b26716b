"""Parts of Anthropic's answers beside text and calls; see `mast_trace_instrumentations.model_calls.extras`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from mast_trace.messages import parsed
from mast_trace_instrumentations.anthropic.requests import text_of
from mast_trace_instrumentations.model_calls import field
from mast_trace_instrumentations.model_calls.extras import CHARS, left, plain

if TYPE_CHECKING:
    from collections.abc import Sequence

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
