"""Actions that execute something: code, searches, web pages."""

from __future__ import annotations

from functools import partial
from typing import Any

from mast_trace.spans import Call, Telemetry, ToolSpan, in_span


def begin_action(
    telemetry: Telemetry, action: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Call:
    """Begin an action that is a tool call."""
    given = kwargs or {}
    if args:
        given = {"input": args[0] if len(args) == 1 else args, **given}
    elif not given and getattr(action, "i_context", None):
        context = action.i_context
        given = {"code": getattr(context, "code", None) or str(context)}
    span = telemetry.tool(type(action).__name__, arguments=given)
    return in_span(span, partial(_record, span))


def _record(span: ToolSpan, result: Any) -> None:
    """Code execution returns (output, success) or a result object with a summary and errors."""
    if isinstance(result, tuple) and len(result) == 2 and isinstance(result[1], bool):
        span.result(result[0])
        if not result[1]:
            span.fail(str(result[0])[-500:] or "failed")
        return
    summary = getattr(result, "summary", None)
    if summary is not None:
        span.result({"summary": summary, "stdout": result.stdout, "stderr": result.stderr})
        if result.stderr:
            span.fail(str(result.stderr)[-500:])
        return
    span.result(result)
