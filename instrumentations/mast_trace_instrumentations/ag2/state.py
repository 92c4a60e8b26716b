"""The context of new spans, and whether they belong to a turn or to a delivery.

A new span becomes a child of ours, whatever span AG2's own telemetry makes current.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from opentelemetry import context as otel_context
from opentelemetry import trace

from mast_trace.spans import Inside, OpenSpan, Run, in_span

if TYPE_CHECKING:
    from opentelemetry.context import Context

    from mast_trace.messages import Message

Span = TypeVar("Span", bound="OpenSpan")

_INNERMOST = "mast-trace-ag2-innermost"
_CLIENT = "mast-trace-ag2-client"
_IN_TURN = "mast-trace-ag2-in-turn"
_AG2_SCOPE = "opentelemetry.instrumentation.ag2"


def here() -> Context:
    """Return the context in which a span that begins now belongs.

    It is the current context, unless AG2's own telemetry has made a span current: that span may be
    exported elsewhere, so that a child of it would lack its parent.
    """
    current = otel_context.get_current()
    scope = getattr(trace.get_current_span(current), "instrumentation_scope", None)
    if getattr(scope, "name", None) == _AG2_SCOPE:
        innermost: Context = otel_context.get_value(_INNERMOST, current) or current  # type: ignore[assignment]
        return innermost
    return current


def nested(span: Span) -> Span:
    """Return ``span``, marked in its context so that `here` finds it."""
    span.context = otel_context.set_value(_INNERMOST, span.context, span.context)
    return span


def in_turn(context: Context) -> Context:
    """Return ``context`` as the one of an agent's turn."""
    return otel_context.set_value(_IN_TURN, True, context)


def in_delivery(client: Any, context: Context) -> Context:
    """Return ``context`` as the one in which ``client`` handles an envelope, outside of any turn."""
    return otel_context.set_value(_CLIENT, client, otel_context.set_value(_IN_TURN, False, context))


def is_delivery(context: Context) -> bool:
    """Return whether an agent in ``context`` is asked on behalf of an envelope.

    Then the envelope is the question, and another envelope carries the answer.
    """
    return (
        otel_context.get_value(_CLIENT, context) is not None
        and otel_context.get_value(_IN_TURN, context) is False
    )


def failure(error: BaseException | None, context: Context) -> BaseException | None:
    """Return ``error`` if it is a failure of the work in ``context``.

    A client that is closed cancels the work of its agents, which is no failure.
    """
    if not isinstance(error, asyncio.CancelledError):
        return error
    client = otel_context.get_value(_CLIENT, context)
    hub_client = getattr(client, "_hub_client", None)
    return None if getattr(hub_client, "_closed", False) else error


def in_own_span(span: OpenSpan, done: Callable[[Any], object]) -> Inside:
    """Return the call of ``span``; being cancelled does not make it a failure."""
    call = in_span(span, done)
    return Inside(
        span.context, lambda result, error: call.end(result, failure(error, span.context))
    )


def unlike_others(message: Message, identity: str, run: Run | None) -> Message:
    """Return ``message`` under an id of its own if its text was sent before in ``run``.

    At first it is the text to which a model's answer may have given an id already; the same text
    sent again is another message.
    """
    if run is None or run.once(("ag2-sent", message.key)):
        return message
    return dataclasses.replace(message, id=identity)
