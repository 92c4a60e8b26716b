"""The base of the recorders of all kinds of events."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opentelemetry import context as otel_context

from mast_trace_instrumentations.crewai import state

if TYPE_CHECKING:
    from mast_trace.spans import OpenSpan, Telemetry


class Recorder:
    """Opens spans on the stack, each as a child of the innermost open one."""

    def __init__(self, telemetry: Telemetry) -> None:
        self._telemetry = telemetry

    @staticmethod
    def _open(kind: str, key: Any, span: OpenSpan, *owner_ids: str) -> state.Frame:
        outside = otel_context.get_current()
        frame = state.Frame(kind, key, span, outside, owners=owner_ids)
        state.push(frame)
        return frame


def text(value: Any) -> str:
    """Return a value as text; nothing for None."""
    return "" if value is None else str(value)
