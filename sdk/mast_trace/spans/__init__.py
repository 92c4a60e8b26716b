"""The write side: spans of runs, agents, messages, model calls and tool calls.

An instrumentation makes its spans with `Telemetry` and calls its framework inside of them with
`handler` or `traced`, of which `mast_trace_instrumentations.base` takes care for rows of a table::

    from mast_trace.spans import Call, Telemetry, in_span

    def begin_tool(telemetry: Telemetry, name: str, arguments: dict) -> Call:
        span = telemetry.tool(name, arguments=arguments)
        return in_span(span, span.result)
"""

from mast_trace.spans.calls import NO_RESULT, Call, Inside, attached, in_span, restore
from mast_trace.spans.guard import guarded
from mast_trace.spans.open_spans import AgentSpan, ChatSpan, OpenSpan, RunSpan, ToolSpan
from mast_trace.spans.run_state import (
    Run,
    chat_is_open,
    current_agent,
    current_run,
    exported_with,
    with_agent,
    with_chat,
)
from mast_trace.spans.telemetry import Telemetry
from mast_trace.spans.within import awaited, handler, traced

__all__ = [
    "NO_RESULT",
    "AgentSpan",
    "Call",
    "ChatSpan",
    "Inside",
    "OpenSpan",
    "Run",
    "RunSpan",
    "Telemetry",
    "ToolSpan",
    "attached",
    "awaited",
    "chat_is_open",
    "current_agent",
    "current_run",
    "exported_with",
    "guarded",
    "handler",
    "in_span",
    "restore",
    "traced",
    "with_agent",
    "with_chat",
]
