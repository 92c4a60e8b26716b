"""One request of the client, from its sending to the last piece of the answer."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from typing import Any

from mast_trace.messages import Message
from mast_trace.spans import Telemetry, attached, guarded
from mast_trace_instrumentations.google_genai import requests
from mast_trace_instrumentations.google_genai.requests import text_of, tool_calls
from mast_trace_instrumentations.model_calls import Answer, ModelCall, field, is_to_be_recorded


def response_answer(response: Any) -> Answer:
    """Read a `GenerateContentResponse`; the first of several candidates counts."""
    assembly = ResponseAssembly()
    assembly.add(response)
    return assembly.answer()


def tokens(usage: Any) -> dict[str, Any]:
    """Read token counts: those of thoughts are output, those of the client's own tools input."""
    shown = _sum(usage, "prompt_token_count", "tool_use_prompt_token_count")
    output_tokens = _sum(usage, "candidates_token_count", "thoughts_token_count")
    counts = {
        "input_tokens": shown,
        "output_tokens": output_tokens,
        "cached_tokens": field(usage, "cached_content_token_count"),
    }
    return {name: count for name, count in counts.items() if count is not None}


class ResponseAssembly:
    """Assembles a streamed response from its pieces, each of which has parts of its own."""

    def __init__(self) -> None:
        self._about: dict[str, Any] = {}
        self._parts: list[Any] = []
        self._has_answer = False

    def add(self, event: Any) -> None:
        """Take the next piece."""
        about = {
            "model": field(event, "model_version"),
            "response_id": field(event, "response_id"),
            **tokens(field(event, "usage_metadata")),
        }
        self._about.update({name: value for name, value in about.items() if value is not None})
        for candidate in (field(event, "candidates") or ())[:1]:
            self._has_answer = True
            reason = field(candidate, "finish_reason")
            if reason is not None:
                self._about["finish_reason"] = str(getattr(reason, "value", reason))
            self._parts.extend(field(field(candidate, "content"), "parts") or ())

    def answer(self) -> Answer:
        """Return the answer received so far."""
        if not self._has_answer:  # blocked, or nothing has come
            return Answer(None, self._about)
        message = Message(text_of(self._parts), tool_calls=tool_calls(self._parts))
        return Answer(message, self._about)


def _sum(usage: Any, *names: str) -> int | None:
    counts = [count for name in names if (count := field(usage, name)) is not None]
    return sum(counts) if counts else None


class ClientCall(ModelCall):
    """A call of the client."""

    def read(self, result: Any) -> Answer:
        """Read the answer."""
        return response_answer(result)


def begin(telemetry: Telemetry, models: Any, request: Mapping[str, Any]) -> ClientCall | None:
    """Begin the span of a call; None where it has one already.

    Args:
        telemetry: makes the span.
        models: the client's `Models`.
        request: the arguments of the call.
    """
    if not is_to_be_recorded(telemetry):
        return None
    vertex = getattr(getattr(models, "_api_client", None), "vertexai", False)
    span = telemetry.chat(
        str(request.get("model") or "unknown"),
        provider="gcp.vertex_ai" if vertex else "gcp.gemini",
        input=requests.messages(request),
    )
    return ClientCall(span, ResponseAssembly())


def stream(
    telemetry: Telemetry, models: Any, request: Mapping[str, Any], inner: Iterator[Any]
) -> Iterator[Any]:
    """Pass a stream on, in a call that begins with its first step."""
    call = None
    with guarded("recording a streamed call of Google Gen AI"):
        call = begin(telemetry, models, request)
    yield from inner if call is None else call.pieces(inner)


async def astream(
    telemetry: Telemetry,
    models: Any,
    request: Mapping[str, Any],
    send: Callable[[], Awaitable[AsyncIterator[Any]]],
) -> AsyncIterator[Any]:
    """Send a request in a call, and return its stream."""
    call = None
    with guarded("recording a streamed call of Google Gen AI"):
        call = begin(telemetry, models, request)
    if call is None:
        return await send()
    try:
        with attached(call.context):
            inner = await send()
    except BaseException as error:
        call.close(error)
        raise
    return call.apieces(inner)
