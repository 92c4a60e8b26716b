"""Executions of tools."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from mast_trace.spans import in_span

if TYPE_CHECKING:
    from mast_trace.spans import Call, Telemetry


def begin_tool(telemetry: Telemetry, tool: Any, arguments: Mapping[str, Any]) -> Call:
    """Begin an execution; the acting agent asked for it."""
    span = telemetry.tool(tool.name, arguments=arguments)
    return in_span(span, span.result)
