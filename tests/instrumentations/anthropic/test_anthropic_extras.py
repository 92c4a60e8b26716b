"""Programs that read thoughts, citations and results of the provider's tools replay identically."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from scripted_protocols.anthropic_messages import AnthropicMessages
from scripted_protocols.server import Request, ScriptedAnswer, ScriptedProvider

anthropic = pytest.importorskip("anthropic", reason="needs the Anthropic client")

import mast_trace
from mast_trace import semconv
from mast_trace.testing import capture_spans, replayed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.framework("anthropic")

NOTE = {
    "type": "char_location",
    "cited_text": "79",
    "document_index": 0,
    "document_title": "List",
    "start_char_index": 4,
    "end_char_index": 6,
}
FOUND = {
    "type": "web_search_result",
    "url": "https://x.org",
    "title": "X",
    "encrypted_content": "abc",
    "page_age": None,
}
BLOCKS: dict[str, list[dict[str, Any]]] = {
    "cite": [
        {"type": "text", "text": "It is "},
        {"type": "text", "text": "79.", "citations": [NOTE]},
    ],
    "think": [
        {"type": "thinking", "thinking": "The list says 79.", "signature": "sig=="},
        {"type": "redacted_thinking", "data": "zzz"},
        {"type": "text", "text": "One moment."},
        {"type": "tool_use", "id": "t1", "name": "look_up", "input": {"key": "x"}},
    ],
    "search": [
        {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {"query": "x"}},
        {"type": "web_search_tool_result", "tool_use_id": "srv_1", "content": [FOUND]},
        {"type": "text", "text": "Found."},
    ],
}
"""Contents by the word that asks for them."""


class Rich(AnthropicMessages):
    """The provider, with answers of many blocks."""

    @staticmethod
    def whole(path: str, request: Request, answer: ScriptedAnswer, number: int) -> dict[str, Any]:
        """A message with the blocks that are asked for; its last one ends at a stop sequence."""
        made = AnthropicMessages.whole(path, request, answer, number)
        asked = str(request["messages"][-1]["content"])
        blocks = next((each for word, each in BLOCKS.items() if word in asked), None)
        if blocks is None:
            return made
        end = {"stop_reason": "stop_sequence", "stop_sequence": "."} if "cite" in asked else {}
        return {**made, "content": blocks, **end}


@pytest.fixture
def rich() -> Iterator[ScriptedProvider]:
    """A server whose answers are more than texts."""
    with ScriptedProvider(Rich(), lambda _request: "Well.") as serving:
        yield serving


def whole(options: dict[str, Any], word: str) -> Any:
    """Call without streaming, and send the answer back."""
    client = anthropic.Anthropic(**options)
    first = _told(client.messages.create(**_request(word)))
    request = _request("Go on")
    request["messages"] = [
        *_request(word)["messages"],
        {"role": "assistant", "content": first["content"]},
        *request["messages"],
    ]
    return first, client.messages.create(**request).content[0].text


def asynchronous(options: dict[str, Any], word: str) -> Any:
    """Call with the asynchronous client."""

    async def ask() -> Any:
        async with anthropic.AsyncAnthropic(**options) as client:
            return _told(await client.messages.create(**_request(word)))

    return asyncio.run(ask())


def streamed(options: dict[str, Any], word: str) -> Any:
    """Call with streaming, and let the client assemble the message."""
    with anthropic.Anthropic(**options).messages.stream(**_request(word)) as stream:
        return _told(stream.get_final_message())


def asynchronously_streamed(options: dict[str, Any], word: str) -> Any:
    """Likewise by the asynchronous client."""

    async def ask() -> Any:
        async with (
            anthropic.AsyncAnthropic(**options) as client,
            client.messages.stream(**_request(word)) as stream,
        ):
            return _told(await stream.get_final_message())

    return asyncio.run(ask())


@pytest.mark.parametrize("way", [whole, asynchronous, streamed, asynchronously_streamed])
def test_a_program_that_reads_extras_replays_identically(
    rich: ScriptedProvider, options: dict[str, Any], way: Callable[[dict[str, Any], str], Any]
) -> None:
    """All blocks are equal, field by field, and the record is the same again."""
    options = {**options, "base_url": rich.url}

    def program() -> list[Any]:
        with mast_trace.run("work"), mast_trace.agent("worker"):
            told = [way(options, word) for word in BLOCKS]
            way(options, "plain")
        return told

    with capture_spans(["anthropic"]) as captured:
        first = program()
    asked = len(rich.requests)
    with replayed(captured.trajectory(), frameworks=["anthropic"]) as replay:
        second = program()
    assert second == first
    replay.assert_identical()
    assert len(rich.requests) == asked
    kept = [span.attributes.get(semconv.RESPONSE_EXTRA) for span in captured.records]
    assert sum(each is not None for each in kept) == len(BLOCKS)


def _request(text: str) -> dict[str, Any]:
    asked = [{"role": "user", "content": text}]
    return {"model": "scripted", "max_tokens": 64, "messages": asked}


def _told(message: Any) -> dict[str, Any]:
    told = message.model_dump(mode="json", exclude_none=True)
    return {key: told.get(key) for key in ("content", "stop_reason", "stop_sequence")}
