"""OpenAI's Responses and Anthropic's Messages: a question of Chat Completions in their form, and their answer in its.

An endpoint asks in the words of Chat Completions, so that what it learns of a server holds for all three.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from mast_trace_judge.config import JudgeConfig

_LONGEST: Final = 16 * 2**20
_ENDS: Final = {
    "max_output_tokens": "length",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "content_filter": "content_filter",
    "refusal": "content_filter",
}
"""Reasons of both for the end of an answer, by those of Chat Completions; any other is no problem."""


@dataclass(frozen=True)
class Protocol:
    """The form of questions and answers of an API.

    Attributes:
        path: below the endpoint's address.
        asked: returns the body of a question.
        told: returns an answer as one of Chat Completions.
        headers: returns those that every request needs, for a key.
    """

    path: str
    asked: Callable[[Mapping[str, Any]], dict[str, Any]]
    told: Callable[[Mapping[str, Any]], dict[str, Any]]
    headers: Callable[[str], dict[str, Any]] = lambda _key: {}


def _ask_responses(request: Mapping[str, Any]) -> dict[str, Any]:
    # Not stored: the record is the user's.
    body = {"model": request["model"], "input": request["messages"], "store": False}
    if wished := request.get("response_format"):
        body["text"] = {"format": {"type": wished["type"], **wished.get("json_schema", {})}}
    if effort := request.get("reasoning_effort"):
        body["reasoning"] = {"effort": effort}
    return body | _limits(request, "max_output_tokens")


def _told_responses(answer: Mapping[str, Any]) -> dict[str, Any]:
    if error := answer.get("error"):
        # As gateways tell it that answer in Chat Completions.
        return _completion("", None, given=0, cached=0, written=0) | {"choices": [], "error": error}
    parts = [
        part
        for item in answer["output"]
        if item["type"] == "message"
        for part in item["content"] or ()
    ]
    usage = answer.get("usage") or {}
    return _completion(
        _joined(part.get("text") for part in parts),
        (answer.get("incomplete_details") or {}).get("reason"),
        given=usage.get("input_tokens"),
        cached=(usage.get("input_tokens_details") or {}).get("cached_tokens"),
        written=usage.get("output_tokens"),
        refusal=_joined(part.get("refusal") for part in parts),
    )


def _ask_messages(request: Mapping[str, Any]) -> dict[str, Any]:
    messages = request["messages"]
    body = {
        "model": request["model"],
        "messages": [each for each in messages if each["role"] != "system"],
        "max_tokens": _LEAST,
    }
    if system := "\n\n".join(each["content"] for each in messages if each["role"] == "system"):
        body["system"] = system
    if shape := (request.get("response_format") or {}).get("json_schema"):
        body["tools"] = [{"name": shape["name"], "input_schema": shape["schema"]}]
        body["tool_choice"] = {"type": "tool", "name": shape["name"]}
    if effort := request.get("reasoning_effort"):
        body["output_config"] = {"effort": effort}
    return body | _limits(request, "max_tokens")


def _told_messages(answer: Mapping[str, Any]) -> dict[str, Any]:
    blocks = answer["content"]
    called = [json.dumps(block["input"]) for block in blocks if block["type"] == "tool_use"]
    usage = answer.get("usage") or {}
    cached = usage.get("cache_read_input_tokens") or 0
    return _completion(
        next(iter(called), "") or _joined(block.get("text") for block in blocks),
        answer.get("stop_reason"),
        given=(usage.get("input_tokens") or 0)
        + cached
        + (usage.get("cache_creation_input_tokens") or 0),
        cached=cached,
        written=usage.get("output_tokens"),
    )


def _headers_of_messages(key: str) -> dict[str, Any]:
    from openai import Omit

    return {"x-api-key": key, "anthropic-version": "2023-06-01", "Authorization": Omit()}


_LEAST: Final = 4096
"""Output tokens of a server of Messages that takes no limit: its API demands one."""
_PROTOCOLS: Final = (
    Protocol("/responses", _ask_responses, _told_responses),
    Protocol("/messages", _ask_messages, _told_messages, _headers_of_messages),
)


def protocol_of(address: str) -> Protocol | None:
    """Return the protocol of an endpoint by the end of its address; None for Chat Completions."""
    return next((each for each in _PROTOCOLS if address.rstrip("/").endswith(each.path)), None)


def client_options(config: JudgeConfig) -> dict[str, Any]:
    """Return the options of the OpenAI client that speaks to the judge's endpoint in any protocol."""
    from openai import DefaultAsyncHttpxClient

    address = config.judge_base_url
    protocol = protocol_of(address)
    return {
        # Local servers need no key, but the client requires one.
        "api_key": config.judge_api_key.get_secret_value() or "none",
        "base_url": (address.rstrip("/").removesuffix(protocol.path) if protocol else address)
        or None,
        "max_retries": 0,
        "timeout": config.judge_timeout_seconds,
        "http_client": DefaultAsyncHttpxClient(event_hooks={"response": [_bound]}),
    }


async def _bound(response: Any) -> None:
    """Read an answer, which is kept in memory, and refuse one that is longer than any that a model gives.

    Raises:
        ValueError: it is too long; the client reports a failed connection.
    """
    read = bytearray()
    async for part in response.aiter_bytes():
        read += part
        if len(read) > _LONGEST:
            raise ValueError(f"the answer has more than {_LONGEST:,} bytes")
    # Where the client keeps what it has read itself.
    response._content = bytes(read)  # noqa: SLF001


def _limits(request: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return limit of output and temperature, as far as the request has them."""
    most = request.get("max_completion_tokens", request.get("max_tokens"))
    told = {name: most, "temperature": request.get("temperature")}
    return {each: value for each, value in told.items() if value is not None}


def _joined(texts: Iterable[str | None]) -> str:
    return "".join(filter(None, texts))


def _completion(
    text: str,
    ended: str | None,
    *,
    given: int | None,
    cached: int | None,
    written: int | None,
    refusal: str = "",
) -> dict[str, Any]:
    message = {"role": "assistant", "content": text, "refusal": refusal or None}
    usage = {
        "prompt_tokens": given or 0,
        "completion_tokens": written or 0,
        "total_tokens": (given or 0) + (written or 0),
        "prompt_tokens_details": {"cached_tokens": cached or 0},
    }
    finish = _ENDS.get(ended or "", "stop")
    return {
        "id": "",
        "created": 0,
        "model": "",
        "object": "chat.completion",
        "usage": usage,
        "choices": [{"index": 0, "finish_reason": finish, "message": message}],
    }
