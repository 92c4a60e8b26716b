"""Tool calls: one span each, also of unknown tools and of those that raise."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from mast_trace_instrumentations.ag2.reading import encoder, text_of
from mast_trace_instrumentations.ag2.state import here, in_own_span, nested

if TYPE_CHECKING:
    from mast_trace.spans import Call, Telemetry, ToolSpan

AGENT_KEY = "__ag2_agent__"


def begin_tool(telemetry: Telemetry, context: Any, call: Any) -> Call:
    """Begin the execution of ``call``."""
    span = nested(
        telemetry.tool(call.name, parent=here(), arguments=call.arguments, call_id=call.id)
    )
    return in_own_span(span, partial(_record, span, context))


def _record(span: ToolSpan, context: Any, outcome: Any) -> None:
    """Record the result of a call; a client's tool runs elsewhere and has none here."""
    result = getattr(outcome, "result", None)
    if result is not None:
        agent = context.dependencies.get(AGENT_KEY)
        span.result(text_of(result.parts, encoder(getattr(agent, "_serializer", None))))
    error = getattr(outcome, "error", None)
    if error is not None:
        span.fail(error)
