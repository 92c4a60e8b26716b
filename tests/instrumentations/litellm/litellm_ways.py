"""The ways to ask by LiteLLM: through OpenAI's client, or by itself."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import litellm
from contract.clients import Told

if TYPE_CHECKING:
    from collections.abc import Sequence

ROUTES = ("anthropic", "openai")
WAYS = (*ROUTES, *(f"{route} stream" for route in ROUTES))
IS_OLD = not hasattr(litellm.CustomStreamWrapper, "close")
PARAMETERS = {"type": "object", "properties": {"key": {"type": "string"}}}
TOOL = {"type": "function", "function": {"name": "look_up", "parameters": PARAMETERS}}


def asking(text: str = "Hello", history: Sequence[Any] = ()) -> list[dict[str, Any]]:
    """The messages of a request."""
    asked = list(history) or [{"role": "user", "content": text}]
    return [{"role": "system", "content": "Be brief."}, *asked]


def tell(
    routes: dict[str, Any], way: str, text: str = "Hello", history: Sequence[Any] = ()
) -> Told:
    """Ask, and read the answer."""
    answer = litellm.completion(**_asked(routes, way, text, history))
    return _read(litellm.stream_chunk_builder(list(answer)) if "stream" in way else answer)


async def atell(
    routes: dict[str, Any], way: str, text: str = "Hello", history: Sequence[Any] = ()
) -> Told:
    """Ask asynchronously."""
    answer = await litellm.acompletion(**_asked(routes, way, text, history))
    if "stream" in way:
        answer = litellm.stream_chunk_builder([chunk async for chunk in answer])
    return _read(answer)


def _asked(routes: dict[str, Any], way: str, text: str, history: Sequence[Any]) -> dict[str, Any]:
    tools = {"tools": [TOOL]} if history else {}
    stream = "stream" in way
    return {
        **routes[way.split(maxsplit=1)[0]],
        "messages": asking(text, history),
        "stream": stream,
        **tools,
    }


def _read(answer: Any) -> Told:
    message = answer.choices[0].message
    calls = [
        (call.id, call.function.name, json.loads(call.function.arguments))
        for call in message.tool_calls or ()
    ]
    return Told(message.content or "", calls, None, [message.model_dump(exclude_none=True)])
