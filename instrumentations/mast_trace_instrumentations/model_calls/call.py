"""The span of a model call, from the request to the last piece of the answer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from opentelemetry import context as otel_context
from opentelemetry import trace

from mast_trace import semconv
from mast_trace.spans import attached, chat_is_open, current_run, guarded, open_chat
from mast_trace.spans.message_attributes import with_earlier_marks
from mast_trace.trajectory import vocabulary

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Mapping

    from opentelemetry.context import Context
    from opentelemetry.trace import Span

    from mast_trace.messages import Message
    from mast_trace.spans import ChatSpan, Telemetry


def is_to_be_recorded(telemetry: Telemetry) -> bool:
    """Return whether a model call that is being made has no span yet."""
    context = otel_context.get_current()
    if chat_is_open(context) or is_theirs(telemetry, context, semconv.CHAT):
        return False
    return current_run(context) is not None or telemetry.records_lone_calls()


def is_theirs(telemetry: Telemetry, context: Context, operation: str) -> bool:
    """Return whether another tool has made the span of this call, on the provider that ``telemetry`` uses."""
    around = trace.get_current_span(context)
    attributes = getattr(around, "attributes", None)
    return (
        attributes is not None
        and vocabulary.operation(attributes) == operation
        and telemetry.shares_exporter(around)
    )


class NotedSpan:
    """Stands for a `mast_trace.spans.ChatSpan` that its framework writes and ends.

    Frameworks pass a part of an answer on: reasoning, citations and refusals are seen by the client alone.

    Args:
        telemetry: has the policy of contents.
        span: of the framework.
    """

    context = None
    """The framework's context stays."""

    def __init__(self, telemetry: Telemetry, span: Span) -> None:
        self._telemetry = telemetry
        self.span = span

    def response(self, _message: Message | None, **about: Any) -> None:
        """Note the extra of an answer; the outermost client counts."""
        with guarded("noting a model's answer"):
            known = getattr(self.span, "attributes", None) or {}
            if self.span.is_recording() and semconv.RESPONSE_EXTRA not in known:
                extra = self._telemetry.writer.beside(about.get("extra"))
                self.span.set_attributes(with_earlier_marks(extra, self.span))

    def set(self, _attributes: Mapping[str, Any]) -> None:
        """Leave other attributes to the framework."""

    def end(self, error: BaseException | None = None) -> None:
        """Leave the end to the framework."""


def noted_span(telemetry: Telemetry) -> NotedSpan | None:
    """Return the open model call of a framework; None where it has none at hand, or no content is captured."""
    span = open_chat()
    if span is None or not span.is_recording() or not telemetry.writer.captures:
        return None
    return NotedSpan(telemetry, span)


@dataclass
class Answer:
    """An answer, with the fields of `mast_trace.spans.ChatSpan.response`."""

    message: Message | None = None
    about: dict[str, Any] = field(default_factory=dict)


class Assembly(Protocol):
    """Assembles a streamed answer from its pieces."""

    def add(self, event: Any) -> None:
        """Take the next piece."""

    def answer(self) -> Answer:
        """Return the answer received so far."""


class ModelCall(ABC):
    """An open `chat` span. A client's sub-class reads its answers and follows its streams.

    Args:
        span: of the call.
        assembly: assembles the answer, where it is a stream.
    """

    def __init__(self, span: ChatSpan | NotedSpan, assembly: Assembly) -> None:
        self.context = span.context
        self._span = span
        self._assembly = assembly

    @abstractmethod
    def read(self, result: Any) -> Answer:
        """Read the client's result."""

    def follow(self, result: Any) -> bool:  # noqa: ARG002
        """Observe the client's result, if it is a stream; return whether it is."""
        return False

    def end(self, result: Any, error: BaseException | None) -> None:
        """End the span with the call's result or error; a stream ends it later itself."""
        if error is not None:
            self._span.end(error)
        elif not self.follow(result):
            try:
                self._record(self.read(result))
            finally:
                self._span.end()

    # -- streams ----------------------------------------------------------------------------------

    def add(self, piece: Any) -> None:
        """Take the next piece of the answer."""
        with guarded("reading a model's stream"):
            self._assembly.add(piece)

    def close(self, error: BaseException | None = None) -> None:
        """End the span with the answer received so far. A program that stops reading is no error."""
        with guarded("recording a model's answer"):
            if self._span.span.is_recording():
                try:
                    self._record(self._assembly.answer())
                finally:
                    self._span.end(None if isinstance(error, GeneratorExit) else error)

    def pieces(self, inner: Iterator[Any]) -> Iterator[Any]:
        """Pass the pieces of a stream on, and record them."""
        try:
            while True:
                with attached(self.context):
                    piece = next(inner)
                self.add(piece)
                yield piece
        except StopIteration:
            self.close()
        except BaseException as error:
            self.close(error)
            raise

    async def apieces(self, inner: AsyncIterator[Any]) -> AsyncIterator[Any]:
        """Pass the pieces of an asynchronous stream on, and record them."""
        try:
            while True:
                with attached(self.context):
                    piece = await anext(inner)
                self.add(piece)
                yield piece
        except StopAsyncIteration:
            self.close()
        except BaseException as error:
            self.close(error)
            raise

    def _record(self, answer: Answer) -> None:
        self._span.response(answer.message, **answer.about)
