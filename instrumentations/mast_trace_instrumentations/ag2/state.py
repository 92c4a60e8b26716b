"""The place of a new span: beneath ours, whatever AG2's own telemetry makes current."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from opentelemetry import context as otel_context
from opentelemetry import trace

if TYPE_CHECKING:
    from opentelemetry.context import Context

    from mast_trace.spans import OpenSpan

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
