"""A call of the client, from the request to the last piece of the answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from opentelemetry import context as otel_context
from opentelemetry import trace

from mast_trace import semconv
from mast_trace.spans import chat_is_open, current_run, exported_with, guarded
from mast_trace.trajectory import vocabulary
from mast_trace_instrumentations.openai import requests, responses

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Mapping

    from opentelemetry.context import Context

    from mast_trace.messages import Message
    from mast_trace.spans import ChatSpan, Run, Telemetry


@dataclass(frozen=True)
class Interface:
    """One of the client's interfaces to models."""

    messages: Callable[[Mapping[str, Any]], list[Message]]
    answer: Callable[[Any], responses.Answer]
    assembly: Callable[[], responses.Assembly]


CHAT = Interface(requests.chat_messages, responses.chat_answer, responses.ChatAssembly)
RESPONSES = Interface(
    requests.responses_messages, responses.response_answer, responses.ResponseAssembly
)


class ModelCall:
    """An open `chat` span, and how to read the answer that ends it."""

    def __init__(self, span: ChatSpan, interface: Interface) -> None:
        self.context = span.context
        self._span = span
        self._interface = interface

    def end(self, result: Any, error: BaseException | None) -> None:
        """End the span with what the call returned or raised; a stream ends it later itself."""
        if error is not None:
            self._span.end(error)
            return
        # `with_raw_response` keeps what it has parsed: the program gets the same object.
        if type(result).__name__ == "LegacyAPIResponse":
            result = result.parse()
        if hasattr(result, "_iterator"):
            self._follow(result)
            return
        if hasattr(result, "id") and hasattr(result, "model"):
            self._record(self._interface.answer(result))
        self._span.end()

    def _follow(self, stream: Any) -> None:
        """Listen to a stream from inside, so that the program keeps the client's own object."""
        assembly = self._interface.assembly()
        inner = stream._iterator  # noqa: SLF001  # no public place is passed by every reader
        follow = self._aevents if hasattr(inner, "__anext__") else self._events
        stream._iterator = follow(inner, assembly)  # noqa: SLF001
        stream.close = self._closing(stream.close, assembly)

    def _events(self, inner: Iterator[Any], assembly: responses.Assembly) -> Iterator[Any]:
        try:
            for event in inner:
                with guarded("reading a model's stream"):
                    assembly.add(event)
                yield event
        except BaseException as error:
            self._end(assembly, error)
            raise
        self._end(assembly, None)

    async def _aevents(
        self, inner: AsyncIterator[Any], assembly: responses.Assembly
    ) -> AsyncIterator[Any]:
        try:
            async for event in inner:
                with guarded("reading a model's stream"):
                    assembly.add(event)
                yield event
        except BaseException as error:
            self._end(assembly, error)
            raise
        self._end(assembly, None)

    def _closing(self, close: Callable[[], Any], assembly: responses.Assembly) -> Callable[[], Any]:
        def closed() -> Any:
            self._end(assembly, None)
            return close()

        return closed

    def _end(self, assembly: responses.Assembly, error: BaseException | None) -> None:
        with guarded("recording a model's answer"):
            if self._span.span.is_recording():
                self._record(assembly.answer())
                self._span.end(None if isinstance(error, GeneratorExit) else error)

    def _record(self, answer: responses.Answer) -> None:
        self._span.response(answer.message, **answer.about)


def begin(
    telemetry: Telemetry, interface: Interface, resource: Any, request: Mapping[str, Any]
) -> ModelCall | None:
    """Begin the span of a call; None where it has one already, and outside of runs.

    Args:
        telemetry: makes the span.
        interface: the one that is called.
        resource: the client's resource, such as its `Completions`.
        request: the arguments of the call.
    """
    context = otel_context.get_current()
    run = current_run(context)
    if run is None or chat_is_open(context) or _is_theirs(context, run):
        return None
    client = type(getattr(resource, "_client", None)).__name__
    span = telemetry.chat(
        str(request.get("model") or "unknown"),
        parent=context,
        provider="azure.ai.openai" if "Azure" in client else "openai",
        input=interface.messages(request),
    )
    return ModelCall(span, interface)


def _is_theirs(context: Context, run: Run) -> bool:
    """Whether another tool has made the span of this call, and it goes where the run's spans go."""
    around = trace.get_current_span(context)
    attributes = getattr(around, "attributes", None)
    return (
        attributes is not None
        and vocabulary.operation(attributes) == semconv.CHAT
        and exported_with(around, run.root)
    )
