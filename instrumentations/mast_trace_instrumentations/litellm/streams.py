"""Streams of LiteLLM, followed where they are read.

Their steps are methods that Python looks up on the class, not on the instance: the classes are
patched, and an instance that is to be followed carries its call.
"""

from __future__ import annotations

import functools
import weakref
from typing import TYPE_CHECKING, Any, Protocol

from opentelemetry import context as otel_context

from mast_trace.spans import NO_RESULT, Inside, attached

if TYPE_CHECKING:
    from collections.abc import Callable

    from opentelemetry.context import Context

    from mast_trace.spans import Call

_CALL = "_mast_trace_call"


class StreamedCall(Protocol):
    """The call of a stream, as notified of the stream's pieces and end."""

    context: Context | None
    stepping: bool

    def add(self, piece: Any) -> None:
        """Take the next piece."""

    def finish(self, chunks: Any, error: BaseException | None = None) -> None:
        """Take the end, with the pieces as LiteLLM keeps them."""

    def close(self) -> None:
        """Handle a stream that was garbage collected."""


def mark(stream: Any, call: StreamedCall) -> None:
    """Follow a stream; dropping it ends its call."""
    setattr(stream, _CALL, call)
    weakref.finalize(stream, call.close)


def carried(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a coroutine function that runs in the present context, in any thread."""
    context = otel_context.get_current()

    @functools.wraps(function)
    async def inside(*args: Any, **kwargs: Any) -> Any:
        with attached(context):
            return await function(*args, **kwargs)

    return inside


def step(stream: Any) -> Call | None:
    """Begin one step of a stream, if it is followed."""
    call: StreamedCall | None = vars(stream).get(_CALL)
    if call is None:
        return None
    call.stepping = True

    def end(piece: Any, error: BaseException | None) -> None:
        call.stepping = False
        if isinstance(error, StopIteration | StopAsyncIteration):
            call.finish(getattr(stream, "chunks", None))
        elif error is not None:
            call.finish(getattr(stream, "chunks", None), error)
        elif piece is not NO_RESULT:
            call.add(piece)

    return Inside(call.context, end)


def close(stream: Any) -> None:
    """End the call of a stream that the program closes, with the answer received so far.

    LiteLLM also closes a stream at its end and after an error, but inside of a step, which reports
    either.
    """
    call: StreamedCall | None = vars(stream).get(_CALL)
    if call is not None and not call.stepping:
        call.finish(getattr(stream, "chunks", None))
