"""A call of the client, from the request to the last piece of the answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mast_trace import semconv
from mast_trace_instrumentations.model_calls import (
    Answer,
    Assembly,
    ModelCall,
    NotedSpan,
    is_to_be_recorded,
    note_parameters,
    noted_span,
    parameters_of,
)
from mast_trace_instrumentations.openai import requests, responses

if TYPE_CHECKING:
    from mast_trace.messages import Message
    from mast_trace.spans import ChatSpan, Telemetry


@dataclass(frozen=True)
class Interface:
    """One of the client's interfaces to models."""

    messages: Callable[[Mapping[str, Any]], list[Message]]
    answer: Callable[[Any], Answer]
    assembly: Callable[[], Assembly]


CHAT = Interface(requests.chat_messages, responses.chat_answer, responses.ChatAssembly)
RESPONSES = Interface(
    requests.responses_messages, responses.response_answer, responses.ResponseAssembly
)


class ClientCall(ModelCall):
    """A call of one of the client's interfaces."""

    def __init__(self, span: ChatSpan | NotedSpan, interface: Interface) -> None:
        super().__init__(span, interface.assembly())
        self._interface = interface

    def read(self, result: Any) -> Answer:
        """Read the answer; None for a raw one that only the program can parse."""
        result = _parsed(result)
        if hasattr(result, "id") and hasattr(result, "model"):
            return self._interface.answer(result)
        return Answer()

    def follow(self, result: Any) -> bool:
        """Observe a stream from inside, so that the program keeps the client's own object."""
        stream = _parsed(result)
        if not hasattr(stream, "_iterator"):
            return False
        inner = stream._iterator  # noqa: SLF001  # no public place is passed by every reader
        pieces = self.apieces if hasattr(inner, "__anext__") else self.pieces
        stream._iterator = pieces(inner)  # noqa: SLF001
        stream.close = self._closing(stream.close)
        return True

    def _closing(self, close: Callable[[], Any]) -> Callable[[], Any]:
        def closed() -> Any:
            self.close()
            return close()

        return closed


def begin(
    telemetry: Telemetry, interface: Interface, resource: Any, request: Mapping[str, Any]
) -> ClientCall | None:
    """Begin the span of a call; None where it has one already.

    Args:
        telemetry: makes the span.
        interface: the called interface.
        resource: the client's resource, such as its `Completions`.
        request: the arguments of the call.
    """
    if not is_to_be_recorded(telemetry):
        note_parameters(request)
        noted = noted_span(telemetry)
        return ClientCall(noted, interface) if noted else None
    client = type(getattr(resource, "_client", None)).__name__
    span = telemetry.chat(
        str(request.get("model") or "unknown"),
        provider="azure.ai.openai" if "Azure" in client else "openai",
        input=interface.messages(request),
        attributes={semconv.REQUEST_PARAMETERS: parameters_of(request)},
    )
    return ClientCall(span, interface)


def _parsed(result: Any) -> Any:
    """Parse a raw answer: it caches the parsed one, so the program gets the same object."""
    return result.parse() if type(result).__name__ == "LegacyAPIResponse" else result
