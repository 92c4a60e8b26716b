"""Functions that the client executes by itself between two calls of a model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from opentelemetry import context as otel_context

from mast_trace import semconv
from mast_trace.spans import Call, Telemetry, current_run, in_span, open_tool
from mast_trace_instrumentations.model_calls import is_theirs


def begin(telemetry: Telemetry, arguments: Any, function: Callable[..., Any]) -> Call | None:
    """Begin the execution of a function; None where a framework records it, and outside of runs."""
    context = otel_context.get_current()
    run = current_run(context)
    if run is None or open_tool(context) or is_theirs(telemetry, context, semconv.EXECUTE_TOOL):
        return None
    span = telemetry.tool(
        str(getattr(function, "__name__", type(function).__name__)),
        arguments=dict(arguments),
        description=getattr(function, "__doc__", None),
    )
    return in_span(span, span.result)
