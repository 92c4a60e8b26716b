"""What the recorders of all kinds of events share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opentelemetry import context as otel_context
from opentelemetry import trace

from mast_trace_instrumentations.crewai import stack

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.trace import Span

    from mast_trace.spans import OpenSpan, Telemetry


class Recorder:
    """Opens spans on the stack, each below the one that is open."""

    def __init__(self, telemetry: Telemetry) -> None:
        self._telemetry = telemetry

    @staticmethod
    def _here() -> Context:
        """Return the context in which new spans belong.

        Another tool that records CrewAI makes spans of its own current inside of ours; where they
        go elsewhere, ours would be orphans below them.
        """
        current = otel_context.get_current()
        frame = stack.top()
        if frame is None or _same_provider(trace.get_current_span(current), frame.span.span):
            return current
        return frame.span.context

    @staticmethod
    def _open(kind: str, key: Any, span: OpenSpan, *owner_ids: str) -> stack.Frame:
        frame = stack.Frame(kind, key, span, otel_context.get_current())
        stack.push(frame, *owner_ids)
        return frame


def _same_provider(one: Span, other: Span) -> bool:
    """Whether two spans are exported together: a provider hands its resource to all of its spans."""
    return getattr(one, "resource", None) is getattr(other, "resource", None)


def text(value: Any) -> str:
    """Return a value as text; nothing for None."""
    return "" if value is None else str(value)
