"""Spans that have begun: what can be said of them until they end."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

from opentelemetry import context as otel_context
from opentelemetry.trace import Status, StatusCode

from mast_trace import semconv
from mast_trace.content import shown, truncate, well_formed
from mast_trace.spans.ended_runs import run_ended

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from opentelemetry.context import Context
    from opentelemetry.trace import Span

    from mast_trace.content import ContentPolicy
    from mast_trace.messages import Message
    from mast_trace.spans.message_attributes import Attributes, MessageWriter
    from mast_trace.spans.run_state import Run


def present(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the attributes that have a value, with texts that can be encoded."""
    # Every attribute of every span passes here: what needs no change costs no call.
    kept: dict[str, Any] = {}
    for name, value in attributes.items():
        if type(value) is str:
            kept[name] = value if value.isascii() else well_formed(value)
        elif isinstance(value, list | tuple):
            kept[name] = [v if type(v) is str and v.isascii() else _encodable(v) for v in value]
        elif value is not None:
            kept[name] = _encodable(value)
    return kept


def _encodable(value: Any) -> Any:
    return well_formed(value) if isinstance(value, str) else value


class ContentWriter(Protocol):
    """Writes texts on spans; `mast_trace.spans.Telemetry` does.

    Attributes:
        content: what of the texts is recorded.
        writer: writes messages.
    """

    content: ContentPolicy
    writer: MessageWriter


class OpenSpan:
    """A span that has begun. Ending it twice is harmless; after the end nothing is written.

    Attributes:
        span: the OpenTelemetry span.
        context: the context in which its children belong.
    """

    def __init__(self, telemetry: ContentWriter, span: Span, context: Context) -> None:
        self.span = span
        self.context = context
        self._telemetry = telemetry

    def set(self, attributes: Mapping[str, Any]) -> None:
        """Add attributes; those that are None are left out."""
        self.span.set_attributes(present(attributes))

    def fail(self, error: BaseException | str) -> None:
        """Mark the span as failed with the error's type and text; does not end it."""
        is_exception = isinstance(error, BaseException)
        kind = type(error).__qualname__ if is_exception else "_OTHER"
        self.span.set_attribute(semconv.ERROR_TYPE, kind)
        content = self._telemetry.content
        # An exception's text quotes what it could not deal with.
        text = truncate(content.clean(shown(error)), 4096) if content.capture else ""
        self.span.set_status(Status(StatusCode.ERROR, text or kind))

    def end(self, error: BaseException | str | None = None, *, end_time: int | None = None) -> None:
        """End the span, as failed if there is an ``error``.

        Args:
            error: the exception, or its text where the framework keeps only that.
            end_time: nanoseconds since the epoch; now if absent.
        """
        if self.span.is_recording():
            if error is not None:
                self.fail(error)
            self.span.end(end_time)

    @contextmanager
    def attached(self) -> Iterator[None]:
        """Make this span current for a call in the same frame; never hold it across a yield."""
        token = otel_context.attach(self.context)
        try:
            yield
        finally:
            otel_context.detach(token)


class RunSpan(OpenSpan):
    """The root of a run."""

    run: Run
    nested: bool = False
    """Whether it is a part of another run."""

    def end(self, error: BaseException | str | None = None, *, end_time: int | None = None) -> None:
        """End the span, as failed if there is an ``error``."""
        if self.span.is_recording():
            super().end(error, end_time=end_time)
            if not self.nested:
                run_ended(self.span.get_span_context())

    def finish(
        self,
        termination: str | None = None,
        *,
        outcome: str | None = None,
        error: BaseException | str | None = None,
    ) -> None:
        """End the run, saying why it stopped (`semconv.Termination`)."""
        self.set({semconv.RUN_TERMINATION_REASON: termination, semconv.RUN_OUTCOME: outcome})
        self.end(error)


class AgentSpan(OpenSpan):
    """An agent's turn."""

    def reply(self, message: Message) -> None:
        """Refer to the message that this turn produced, writing it out only if no span holds it."""
        self.set(self._telemetry.writer.produced(message, self.context))


class ToolSpan(OpenSpan):
    """The execution of a tool."""

    call_id: str | None = None
    """The model's id of the call."""

    def result(self, value: Any) -> None:
        """Record what the tool returned. An error that the framework turned into text is `fail`ed too."""
        self.set(self._telemetry.writer.returned(value, self.context, self.call_id))


class ChatSpan(OpenSpan):
    """A call of a model."""

    def response(
        self,
        message: Message | None,
        *,
        model: str | None = None,
        response_id: str | None = None,
        finish_reason: str | None = None,
        input_tokens: int | None = None,
        output_tokens: int | None = None,
        cached_tokens: int | None = None,
    ) -> None:
        """Record the model's answer and its usage."""
        said: Attributes = {
            semconv.RESPONSE_MODEL: model,
            semconv.RESPONSE_ID: response_id,
            semconv.FINISH_REASONS: [finish_reason] if finish_reason else None,
            semconv.INPUT_TOKENS: input_tokens,
            semconv.OUTPUT_TOKENS: output_tokens,
            semconv.CACHED_INPUT_TOKENS: cached_tokens,
        }
        if message is not None:
            said.update(self._telemetry.writer.produced(message, self.context))
        self.set(said)
