"""The span of a model call, from the request to the last piece of the answer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from mast_trace.spans import attached, guarded

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from mast_trace.spans import ChatSpan
    from mast_trace_instrumentations.model_calls.answer import Answer, Assembly
    from mast_trace_instrumentations.model_calls.noted import NotedSpan


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
