"""One request of the client, from its sending to the last piece of the answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mast_trace.spans import attached, guarded
from mast_trace_instrumentations.google_genai import answers, requests
from mast_trace_instrumentations.model_calls import Answer, ModelCall, is_to_be_recorded

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping

    from mast_trace.spans import Telemetry


class ClientCall(ModelCall):
    """A call of the client."""

    def read(self, result: Any) -> Answer:
        """Read the answer."""
        return answers.response_answer(result)


def begin(telemetry: Telemetry, models: Any, request: Mapping[str, Any]) -> ClientCall | None:
    """Begin the span of a call; None where it has one already, and outside of runs.

    Args:
        telemetry: makes the span.
        models: the client's `Models`.
        request: the arguments of the call.
    """
    if not is_to_be_recorded():
        return None
    vertex = getattr(getattr(models, "_api_client", None), "vertexai", False)
    span = telemetry.chat(
        str(request.get("model") or "unknown"),
        provider="gcp.vertex_ai" if vertex else "gcp.gemini",
        input=requests.messages(request),
    )
    return ClientCall(span, answers.ResponseAssembly())


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
