"""Executions of tools."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mast_trace.spans import Call, Telemetry, in_span


def begin_tool(telemetry: Telemetry, tool: Any, arguments: Mapping[str, Any]) -> Call:
    """Begin an execution; the acting agent asked for it."""
    span = telemetry.tool(tool.name, arguments=arguments)
    return in_span(span, span.result)
