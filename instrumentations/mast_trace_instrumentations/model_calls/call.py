"""The span of a model call, from the request to the last piece of the answer, with the parameters of the request."""

from __future__ import annotations

import dataclasses
import json
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, Protocol

from opentelemetry import context as otel_context
from opentelemetry import trace

from mast_trace import semconv
from mast_trace.content import content_hash, data_mark, shown
from mast_trace.spans import (
    ChatSpan,
    Telemetry,
    attached,
    chat_is_open,
    current_run,
    guarded,
    open_chat,
)
from mast_trace.spans.message_attributes import with_earlier_marks
from mast_trace.trajectory import vocabulary

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.trace import Span

    from mast_trace.messages import Message


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


@dataclasses.dataclass
class Answer:
    """An answer, with the fields of `mast_trace.spans.ChatSpan.response`."""

    message: Message | None = None
    about: dict[str, Any] = dataclasses.field(default_factory=dict)


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


_NAMES: Final = (
    *("temperature", "top_p", "top_k", "seed", "n", "stop", "stop_sequences", "logit_bias"),
    *("max_tokens", "max_completion_tokens", "max_output_tokens"),
    *("presence_penalty", "frequency_penalty", "tools", "tool_choice", "parallel_tool_calls"),
    *("functions", "function_call", "response_format", "text", "text_format", "output_format"),
    *("output_config", "reasoning", "reasoning_effort", "thinking", "verbosity"),
)
_WORDS: Final = {"tool_choice", "function_call", "reasoning_effort", "verbosity"}
"""Parameters whose texts are words of the provider's interface."""
_LEFT_OUT: Final = {"NotGiven", "Omit"}
"""Types by which OpenAI's and Anthropic's clients mark parameters that are not sent."""


def items(given: Any) -> Iterable[Any]:
    """Return the items of a list; nothing for other objects, as an iterator would be consumed."""
    return given if isinstance(given, list | tuple) else ()


def field(item: Any, name: str) -> Any:
    """Read a field of a mapping or of one of the client's own objects."""
    return item.get(name) if isinstance(item, Mapping) else getattr(item, name, None)


def media_mark(kind: str, data: Any) -> str:
    """Return the placeholder for a picture, a sound or a document in a recorded text.

    Args:
        kind: media type, or the client's name for such a part.
        data: the bytes, their encoded text, or an address. An address is kept as it is; the others
            are represented by length and a hash, so that two pictures remain different.
    """
    if data is None:
        return f"[{kind}]"
    if isinstance(data, str) and "://" in data[:16]:
        return f"[{kind} {data}]"
    if not isinstance(data, str | bytes):
        # Files, paths and the like: the client reads them.
        return f"[{kind} {type(data).__name__}]"
    return f"[{kind}, {data_mark(data)}]"


def parameters_of(request: Mapping[str, Any]) -> list[str]:
    """Return the parameters of a request as ``name=value``; texts and structures as a hash.

    Args:
        request: the arguments of a client's call.
    """
    found = []
    for name in _NAMES:
        value = request.get(name)
        if value is None or type(value).__name__ in _LEFT_OUT:
            continue
        if isinstance(value, bool | int | float) or (name in _WORDS and isinstance(value, str)):
            found.append(f"{name}={value}")
        else:
            found.append(f"{name}={content_hash(_text(value))}")
    return found


def note_parameters(request: Mapping[str, Any]) -> None:
    """Write the parameters on the span of the open model call, which a framework has begun.

    The outermost client counts: it has what the program, or the framework, has asked for.
    """
    with guarded("noting a model's parameters"):
        span = open_chat()
        if span is None or not span.is_recording():
            return
        if semconv.REQUEST_PARAMETERS not in (getattr(span, "attributes", None) or {}):
            span.set_attribute(semconv.REQUEST_PARAMETERS, parameters_of(request))


def _text(value: Any) -> str:
    # Frameworks collect tools in sets, so that each execution may list them in another order.
    parts = sorted(map(_spelt, value)) if isinstance(value, list | tuple) else [_spelt(value)]
    return "\n".join(parts)


def _spelt(value: Any) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False, default=_plain)


def _plain(value: Any) -> Any:
    schema = getattr(value, "model_json_schema", None)
    if isinstance(value, type) and schema is not None:
        return schema()
    if hasattr(value, "model_dump"):
        return value.model_dump()
    return type(value).__name__ if callable(value) else shown(value)


CHARS: Final = "chars"
"""Key of a part's number of characters, which stands for the text."""

_DEEPEST: Final = 20


def plain(value: Any, depth: int = 0) -> Any:
    """Return a mapping, or an object of a client, as JSON can hold it.

    Fields that the server did not send are left out; those that it sent empty stay, because a client that does
    not know a field shows it as it came.
    """
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if depth > _DEEPEST:
        return shown(value)
    if hasattr(value, "model_dump"):
        value = value.model_dump(exclude_unset=True, warnings=False)
    if isinstance(value, Mapping):
        return {str(key): plain(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item, depth + 1) for item in value]
    return shown(value)


def left(value: Any, known: Iterable[str]) -> dict[str, Any]:
    """Return the fields of a value that are not empty, without the known ones."""
    # Fields are looked at before anything is copied: streams have many pieces and seldom such a field.
    fields = value if isinstance(value, Mapping) else getattr(value, "__dict__", None) or {}
    more = getattr(value, "model_extra", None) or {}
    items = [
        (str(key), item)
        for each in (fields, more)
        for key, item in each.items()
        if key not in known and not str(key).startswith("_") and not _is_empty(item)
    ]
    copied = {key: plain(item) for key, item in items}
    return {key: item for key, item in copied.items() if not _is_empty(item)}


def _is_empty(value: Any) -> bool:
    return value is None or (isinstance(value, str | list | dict) and not value)
