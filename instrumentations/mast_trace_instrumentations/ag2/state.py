"""Where a new span belongs, and how a call is awaited inside one."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from opentelemetry import context as otel_context
from opentelemetry import trace

from mast_trace.spans import guarded

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from opentelemetry.context import Context

    from mast_trace.spans import OpenSpan

T = TypeVar("T")
Span = TypeVar("Span", bound="OpenSpan")

_INNERMOST = "mast-trace-ag2-innermost"
_AG2_SCOPE = "opentelemetry.instrumentation.ag2"


def here() -> Context:
    """Return the context in which a span that begins now belongs.

    That is the current one, unless AG2's own telemetry has made a span current: it may go to
    another place than ours, where a child of it would be an orphan.
    """
    current = otel_context.get_current()
    scope = getattr(trace.get_current_span(current), "instrumentation_scope", None)
    if getattr(scope, "name", None) == _AG2_SCOPE:
        innermost: Context = otel_context.get_value(_INNERMOST, current) or current  # type: ignore[assignment]
        return innermost
    return current


def nested(span: Span) -> Span:
    """Let what happens inside ``span`` find it with `here`."""
    span.context = otel_context.set_value(_INNERMOST, span.context, span.context)
    return span


@contextmanager
def attached(context: Context | None) -> Iterator[None]:
    """Make ``context`` current for a call in the same frame; None changes nothing."""
    if context is None:
        yield
        return
    token = otel_context.attach(context)
    try:
        yield
    finally:
        otel_context.detach(token)


async def inside(
    span: OpenSpan | None, call: Callable[[], Awaitable[T]], done: Callable[[T], Any]
) -> T:
    """Await ``call`` inside ``span`` and end the span: with its error, or after ``done`` read it.

    Args:
        span: None where telemetry failed to begin it; the call is made all the same.
        call: the framework's own.
        done: records the result.
    """
    if span is None:
        return await call()
    with attached(span.context):
        try:
            result = await call()
        except BaseException as error:
            with guarded("ending a span"):
                span.end(error)
            raise
    with guarded("recording a result"):
        done(result)
    with guarded("ending a span"):
        span.end()
    return result
