"""Paths of the branches of a program that is being replayed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opentelemetry.sdk.trace import SpanProcessor
from opentelemetry.trace import format_span_id, format_trace_id

from mast_trace import semconv
from mast_trace.fork_safe import lock
from mast_trace.spans.run_state import innermost_span
from mast_trace.trajectory.branches import Paths

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.sdk.trace import Span


class LiveBranches(SpanProcessor):
    """Notes the path of each span as it begins, as the recorded run's paths are read from its spans."""

    def __init__(self) -> None:
        self._paths = Paths()
        self._lock = lock()

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:  # noqa: ARG002
        """Note a span."""
        context, parent = span.context, span.parent
        attributes = span.attributes or {}
        with self._lock:
            self._paths.add(
                format_trace_id(context.trace_id),
                format_span_id(context.span_id),
                format_span_id(parent.span_id) if parent else "",
                str(attributes.get(semconv.OPERATION_NAME) or ""),
                attributes,
            )

    def current(self) -> str:
        """Return the path of the innermost span that is open in the current context."""
        span = innermost_span()
        if span is None:
            return ""
        with self._lock:
            return self._paths.of(format_span_id(span.get_span_context().span_id))
