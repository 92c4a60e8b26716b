"""Decides whether a model call needs a span of ours."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opentelemetry import context as otel_context
from opentelemetry import trace

from mast_trace import semconv
from mast_trace.spans import chat_is_open, current_run, exported_with
from mast_trace.trajectory import vocabulary

if TYPE_CHECKING:
    from opentelemetry.context import Context

    from mast_trace.spans import Run


def is_to_be_recorded(context: Context | None = None) -> bool:
    """Return whether a model call made in ``context`` is in a run, and has no span yet."""
    context = otel_context.get_current() if context is None else context
    run = current_run(context)
    return (
        run is not None and not chat_is_open(context) and not is_theirs(context, run, semconv.CHAT)
    )


def is_theirs(context: Context, run: Run, operation: str) -> bool:
    """Return whether another tool has made the span of this call, on the provider that the run uses."""
    around = trace.get_current_span(context)
    attributes = getattr(around, "attributes", None)
    return (
        attributes is not None
        and vocabulary.operation(attributes) == operation
        and exported_with(around, run.root)
    )
