"""How a call of the framework is made inside a span, whether it returns or is awaited."""

from __future__ import annotations

import inspect
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from opentelemetry import context as otel_context

from mast_trace.spans import guarded

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from opentelemetry.context import Context

_QUIET = "mast-trace-autogen-quiet"


@contextmanager
def attached(context: Context) -> Iterator[None]:
    """Make ``context`` current for a call in the same frame."""
    token = otel_context.attach(context)
    try:
        yield
    finally:
        otel_context.detach(token)


def within(
    context: Context | None,
    call: Callable[[], Any],
    end: Callable[[Any, BaseException | None], Any],
) -> Any:
    """Call inside ``context``, then `end` with the result or the error.

    A call that returns something to await is awaited inside of it as well, so that the sync and
    the async face of a method share one wrapper.

    Args:
        context: None where telemetry failed to begin; the call is made all the same.
        call: the framework's own.
        end: records what came of it.
    """
    if context is None:
        return call()
    try:
        with attached(context):
            result = call()
    except BaseException as error:
        with guarded("ending a span"):
            end(None, error)
        raise
    if inspect.isawaitable(result):
        return _awaited(context, result, end)
    with guarded("ending a span"):
        end(result, None)
    return result


async def _awaited(
    context: Context,
    call: Awaitable[Any],
    end: Callable[[Any, BaseException | None], Any],
) -> Any:
    try:
        with attached(context):
            result = await call
    except BaseException as error:
        with guarded("ending a span"):
            end(None, error)
        raise
    with guarded("ending a span"):
        end(result, None)
    return result


def quietly(call: Callable[[], Any]) -> Any:
    """Call without recording who talks: a hidden chat that selects a speaker, a replayed history."""
    context = otel_context.set_value(_QUIET, True, otel_context.get_current())
    return within(context, call, lambda _result, _error: None)


def is_quiet() -> bool:
    """Whether talk is not recorded now."""
    return otel_context.get_current().get(_QUIET) is True
