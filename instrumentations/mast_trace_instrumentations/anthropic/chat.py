"""A call of the client, from the request to the last piece of the answer."""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from inspect import iscoroutinefunction
from typing import TYPE_CHECKING, Any

from opentelemetry import context as otel_context

from mast_trace import semconv
from mast_trace_instrumentations.anthropic import answers, requests
from mast_trace_instrumentations.model_calls import (
    Answer,
    ModelCall,
    NotedSpan,
    field,
    is_to_be_recorded,
    note_parameters,
    noted_span,
    parameters_of,
)

if TYPE_CHECKING:
    from opentelemetry.context import Context

    from mast_trace.spans import ChatSpan, Telemetry

_NOTE = "_mast_trace_request"
_CALL = "_mast_trace_call"
_RAW = "X-Stainless-Raw-Response"
_PROVIDERS = {"Bedrock": "aws.bedrock", "Vertex": "gcp.vertex_ai"}


class ClientCall(ModelCall):
    """A call of the client.

    Args:
        span: of the call.
        raw: kind of raw answer that the program asked for, if any; with ``stream`` the program
            reads the body as well.
    """

    def __init__(self, span: ChatSpan | NotedSpan, raw: str | None) -> None:
        super().__init__(span, answers.MessageAssembly())
        self._raw = raw

    def read(self, result: Any) -> Answer:
        """Read the answer; None if the program is to read its body."""
        result = self._parsed(result)
        return answers.message_answer(result) if field(result, "usage") else Answer()

    def follow(self, result: Any) -> bool:
        """Observe a stream from inside, so that the program keeps the client's own object."""
        parsed = self._parsed(result)
        stream = getattr(parsed, "_raw_stream", parsed)
        if not hasattr(stream, "_iterator"):
            return False
        inner = stream._iterator  # noqa: SLF001  # no public place is passed by every reader
        pieces = self.apieces if hasattr(inner, "__anext__") else self.pieces
        stream._iterator = pieces(inner)  # noqa: SLF001
        # Neither refers to the stream: the client relies on it being collected once it is dropped.
        setattr(stream, _CALL, self)
        weakref.finalize(stream, self.close)
        return True

    def _parsed(self, result: Any) -> Any:
        """Return the parsed answer where the program has asked for a raw one."""
        if self._raw is None:
            return result
        if self._raw == "stream":
            return None
        if not iscoroutinefunction(result.parse):
            # the raw answer caches the parsed one: the program gets the same object
            return result.parse()
        response = result.http_response
        return response.json() if response.is_stream_consumed else None


def begin(telemetry: Telemetry, resource: Any, request: Mapping[str, Any]) -> ClientCall | None:
    """Begin the span of a call; None where it has one already.

    Args:
        telemetry: makes the span.
        resource: the client's `Messages`.
        request: the arguments of the call.
    """
    headers = request.get("extra_headers") or {}
    if not is_to_be_recorded(telemetry):
        note_parameters(request)
        noted = noted_span(telemetry)
        return ClientCall(noted, headers.get(_RAW)) if noted else None
    client = type(getattr(resource, "_client", None)).__name__
    span = telemetry.chat(
        str(request.get("model") or "unknown"),
        provider=next((known for name, known in _PROVIDERS.items() if name in client), "anthropic"),
        input=requests.messages(request),
        attributes={semconv.REQUEST_PARAMETERS: parameters_of(request)},
    )
    return ClientCall(span, headers.get(_RAW))


def holding(resource: Any, request: Mapping[str, Any]) -> Context:
    """Return the context in which a stream manager is made that will send a request."""
    return otel_context.set_value(_NOTE, (resource, dict(request)))


def note_request(manager: Any) -> None:
    """Keep the request of the context with the manager that will send it."""
    held = otel_context.get_value(_NOTE)
    if held is not None:
        setattr(manager, _NOTE, held)


def begin_noted(telemetry: Telemetry, manager: Any) -> ClientCall | None:
    """Begin the call of a manager whose block is entered."""
    noted = getattr(manager, _NOTE, None)
    return begin(telemetry, *noted) if noted else None


def close(stream: Any) -> None:
    """End the call of a stream with the answer received so far."""
    call = getattr(stream, _CALL, None)
    if call is not None:
        call.close()
