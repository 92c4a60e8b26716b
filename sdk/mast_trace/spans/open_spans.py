"""Open spans: attributes, errors and results that are written until a span ends."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

from opentelemetry import context as otel_context
from opentelemetry.trace import Span, Status, StatusCode

from mast_trace import semconv
from mast_trace.content import ContentPolicy, shown, truncate, well_formed
from mast_trace.result_types import BLOCK, exception_type, opaque_type, result_type
from mast_trace.spans import human_input
from mast_trace.spans.message_attributes import Attributes, MessageWriter, with_earlier_marks
from mast_trace.spans.run_state import Run, run_ended

if TYPE_CHECKING:
    from opentelemetry.context import Context

    from mast_trace.messages import Message


def present(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the attributes that have a value, with texts that can be encoded."""
    # Every attribute of every span passes here; the common case makes no further call.
    kept: dict[str, Any] = {}
    for name, value in attributes.items():
        kind = type(value)
        if kind is str:
            kept[name] = value if value.isascii() else well_formed(value)
        elif kind is int or kind is bool:
            kept[name] = value
        elif value is None:
            continue
        elif kind is list or isinstance(value, list | tuple):
            kept[name] = [v if type(v) is str and v.isascii() else _encodable(v) for v in value]
        else:
            kept[name] = _encodable(value)
    return kept


def _encodable(value: Any) -> Any:
    return well_formed(value) if isinstance(value, str) else value


class ContentWriter(Protocol):
    """Writes texts on spans; `mast_trace.spans.Telemetry` does.

    Attributes:
        content: decides how much of the texts is recorded.
        writer: writes messages.
    """

    content: ContentPolicy
    writer: MessageWriter


class OpenSpan:
    """A span that has begun. Ending it twice is harmless; nothing is written after the end.

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
        if kept := present(attributes):
            self.span.set_attributes(with_earlier_marks(kept, self.span))

    def fail(self, error: BaseException | str) -> None:
        """Mark the span as failed with the error's type and text; does not end it."""
        is_exception = isinstance(error, BaseException)
        kind = type(error).__qualname__ if is_exception else "_OTHER"
        self.span.set_attribute(semconv.ERROR_TYPE, kind)
        content = self._telemetry.content
        # An exception's text often quotes its input.
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
    """True if the run is a part of another run."""

    def end(self, error: BaseException | str | None = None, *, end_time: int | None = None) -> None:
        """End the span, as failed if there is an ``error``."""
        if self.span.is_recording():
            if not self.nested:
                self.set(human_input.run_ended(self.run, self._telemetry.content))
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
        """End the run with the reason why it stopped (`semconv.Termination`)."""
        self.set({semconv.RUN_TERMINATION_REASON: termination, semconv.RUN_OUTCOME: outcome})
        self.end(error)


class AgentSpan(OpenSpan):
    """An agent's turn. Its attributes are written together when it ends, because each write has a cost."""

    def __init__(self, telemetry: ContentWriter, span: Span, context: Context) -> None:
        super().__init__(telemetry, span, context)
        self._added: dict[str, Any] = {}

    def set(self, attributes: Mapping[str, Any]) -> None:
        """Add attributes; those that are None are left out."""
        self._added.update(with_earlier_marks(present(attributes), self.span, self._added))

    def end(self, error: BaseException | str | None = None, *, end_time: int | None = None) -> None:
        """End the span, as failed if there is an ``error``."""
        if self._added and self.span.is_recording():
            self.span.set_attributes(self._added.copy())  # another thread may add meanwhile
        super().end(error, end_time=end_time)

    def reply(self, message: Message) -> None:
        """Refer to the message that this turn produced, writing it out only if no span holds it."""
        self.set(self._telemetry.writer.replied(message, self.context))


class ToolSpan(OpenSpan):
    """The execution of a tool."""

    call_id: str | None = None
    """The model's id of the call."""
    _in_block = False

    def runs_in_block(self) -> None:
        """Record that the tool's code stands in a block of the program, which nothing can answer."""
        self._in_block = True
        self.set({semconv.TOOL_RESULT_TYPE: BLOCK})

    def fail(self, error: BaseException | str) -> None:
        """Mark the span as failed with the error's type and text, also as a replay needs it; does not end it."""
        super().fail(error)
        if isinstance(error, BaseException) and not self._in_block:
            self.set({semconv.TOOL_RESULT_TYPE: exception_type(error)})

    def result(self, value: Any) -> None:
        """Record the tool's result. Call `fail` as well for an error that the framework turned into text."""
        self.set(self._telemetry.writer.returned(value, self.context, self.call_id))

    def returned(self, value: Any) -> None:
        """Record a result that the program itself receives, with its type."""
        written = self._telemetry.writer.returned(value, self.context, self.call_id)
        if self._telemetry.content.capture:
            text = str(written.get(semconv.TOOL_CALL_RESULT, ""))
            written[semconv.TOOL_RESULT_TYPE] = result_type(value, text)
        self.set(written)

    def typed(self, value: Any, text: str) -> None:
        """Record the type of a result whose text is recorded, if the text spells the value."""
        content = self._telemetry.content
        if content.capture and not opaque_type(kind := result_type(value, content.clean(text))):
            self.set({semconv.TOOL_RESULT_TYPE: kind})


class ChatSpan(OpenSpan):
    """A call of a model."""

    whole = True
    """False for one of very many outside of runs: its texts are left out."""

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
        cache_write_tokens: int | None = None,
        cost_usd: float | None = None,
        extra: Mapping[str, Any] | None = None,
    ) -> None:
        """Record the model's answer and its usage.

        Args:
            message: the answer.
            model: name of the model that answered.
            response_id: the provider's id of the answer.
            finish_reason: the reason for the answer's end, in the provider's term.
            input_tokens: all that were read, those from a cache and those written to it included.
            output_tokens: all that were written, those of reasoning included.
            cached_tokens: those of the input that came from a cache.
            cache_write_tokens: those of the input that were written to a cache.
            cost_usd: US dollars, where the client reckons them.
            extra: the parts of the answer beside its text and its tool calls.
        """
        recorded: Attributes = {
            semconv.RESPONSE_MODEL: model,
            semconv.RESPONSE_ID: response_id,
            semconv.FINISH_REASONS: [finish_reason] if finish_reason else None,
            semconv.INPUT_TOKENS: input_tokens,
            semconv.OUTPUT_TOKENS: output_tokens,
            semconv.CACHED_INPUT_TOKENS: cached_tokens,
            semconv.CACHE_WRITE_INPUT_TOKENS: cache_write_tokens,
            semconv.COST_USD: cost_usd,
        }
        if message is not None and self.whole:
            recorded.update(self._telemetry.writer.answered(message, self.context))
        # Both parts may name altered attributes.
        beside = self._telemetry.writer.beside(extra if self.whole else None)
        recorded.update(with_earlier_marks(beside, self.span, recorded))
        self.set(recorded)
