"""The write side: spans of runs, agents, messages, model calls and tool calls.

An instrumentation creates its spans with `Telemetry` and calls its framework inside of them with
`handler` or `traced`, which `mast_trace_instrumentations.base` applies to the rows of a table::

    from mast_trace.spans import Call, Telemetry, in_span

    def begin_tool(telemetry: Telemetry, name: str, arguments: dict) -> Call:
        span = telemetry.tool(name, arguments=arguments)
        return in_span(span, span.result)
"""

from mast_trace.spans.calls import NO_RESULT, Call, Inside, attached, in_span, restore
from mast_trace.spans.guard import guarded
from mast_trace.spans.open_spans import AgentSpan, ChatSpan, OpenSpan, RunSpan, ToolSpan
from mast_trace.spans.run_state import (
    OpenChat,
    Run,
    chat_is_open,
    current_agent,
    current_run,
    exported_with,
    open_chat,
    open_tool,
    with_agent,
    with_chat,
    with_tool,
)
from mast_trace.spans.telemetry import Telemetry
from mast_trace.spans.within import awaited, handler, traced

__all__ = [
    "NO_RESULT",
    "AgentSpan",
    "Call",
    "ChatSpan",
    "Inside",
    "OpenChat",
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
    "open_chat",
    "open_tool",
    "restore",
    "traced",
    "with_agent",
    "with_chat",
    "with_tool",
]
