"""The ways to ask by the Anthropic client, and its scripted model."""

from __future__ import annotations

import inspect
import json
from typing import TYPE_CHECKING, Any

import anthropic
from contract.clients import Told
from recorded_calls import ANSWER
from scripted_llm import Call
from scripted_protocols.anthropic_messages import AnthropicMessages
from scripted_protocols.server import Request, ScriptedAnswer

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

WAYS = ("create", "raw", "stream", "helper", "beta", "beta stream", "beta helper")
CALL = Call("look_up", {"key": "x", "more": "y" * 20}, "t1")
ANSWERS = {
    "tool": ScriptedAnswer("Let me see.", calls=(CALL,)),
    "think": ScriptedAnswer("Thought.", thinking="First this, then that."),
    "cache": ScriptedAnswer("Cached.", cached=100, stored=20),
    "refuse": ScriptedAnswer("scripted failure", status=400),
    "break": ScriptedAnswer("scripted failure", status=500),
    "reset": ScriptedAnswer(ANSWER, reset_after=5),
}
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
    "ponder": [
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
    """The provider, with answers of many blocks for some words."""

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


def script(request: dict[str, Any]) -> ScriptedAnswer | str:
    """Answer, call a tool, think, or fail, as the last message asks for."""
    asked = str(request["messages"][-1]["content"])
    return next((each for word, each in ANSWERS.items() if word in asked), ANSWER)


def request(text: str = "Hello", history: Sequence[Any] = (), **more: Any) -> dict[str, Any]:
    """A request."""
    asked = list(history) or [{"role": "user", "content": text}]
    return {"model": "scripted", "max_tokens": 64, "system": "Be brief.", "messages": asked, **more}


def tell(
    options: dict[str, Any], way: str, text: str = "Hello", history: Sequence[Any] = ()
) -> Told:
    """Ask, and read the answer."""
    with anthropic.Anthropic(**options) as client:
        messages, asked = _messages(client, way), request(text, history)
        if "helper" in way:
            with messages.stream(**asked) as stream:
                return _told(_dumped(stream.get_final_message()))
        if "stream" in way:
            return _told(assembled(messages.create(**asked, stream=True)))
        answer = messages.create(**asked)
        return _told(_dumped(answer.parse() if way == "raw" else answer))


async def atell(
    options: dict[str, Any], way: str, text: str = "Hello", history: Sequence[Any] = ()
) -> Told:
    """Ask by the asynchronous client."""
    async with anthropic.AsyncAnthropic(**options) as client:
        messages, asked = _messages(client, way), request(text, history)
        if "helper" in way:
            async with messages.stream(**asked) as stream:
                return _told(_dumped(await stream.get_final_message()))
        if "stream" in way:
            pieces = await messages.create(**asked, stream=True)
            return _told(assembled([event async for event in pieces]))
        answer = await messages.create(**asked)
        parsed = answer.parse() if way == "raw" else answer
        return _told(_dumped(await parsed if inspect.isawaitable(parsed) else parsed))


def _messages(client: Any, way: str) -> Any:
    messages = client.beta.messages if "beta" in way else client.messages
    return messages.with_raw_response if way == "raw" else messages


def _dumped(message: Any) -> dict[str, Any]:
    return dict(message.model_dump(mode="json", exclude_none=True))


def assembled(events: Iterable[Any]) -> dict[str, Any]:
    """Put a message together from the events of its stream."""
    blocks: list[dict[str, Any]] = []
    end: dict[str, Any] = {}
    for event in map(_dumped, events):
        if event["type"] == "content_block_start":
            blocks.append(event["content_block"])
        elif event["type"] == "content_block_delta":
            delta = {key: value for key, value in event["delta"].items() if key != "type"}
            for key, value in delta.items():
                if key == "citation":
                    blocks[-1]["citations"].append(value)
                else:
                    blocks[-1][key] = blocks[-1].get(key, "") + value
        elif event["type"] == "message_delta":
            end = event["delta"]
    for block in blocks:
        if "partial_json" in block:
            block["input"] = json.loads(block.pop("partial_json"))
    return {**end, "content": blocks}


def _told(message: dict[str, Any]) -> Told:
    content = message["content"]
    text = "".join(block["text"] for block in content if block["type"] == "text")
    calls = [(b["id"], b["name"], b["input"]) for b in content if b["type"] == "tool_use"]
    end = (message["stop_reason"], message.get("stop_sequence"))
    return Told(text, calls, end, [{"role": "assistant", "content": content}])
