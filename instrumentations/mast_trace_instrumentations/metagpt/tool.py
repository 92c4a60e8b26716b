"""Actions that execute something: code, searches, web pages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mast_trace.spans import guarded

if TYPE_CHECKING:
    from collections.abc import Callable

    from mast_trace.spans import Telemetry, ToolSpan


class ActionWrappers:
    """Wrappers of the actions that are tool calls."""

    telemetry: Telemetry

    async def run_action(
        self, wrapped: Callable[..., Any], action: Any, args: Any, kwargs: dict[str, Any]
    ) -> Any:
        """Record an action as a tool call."""
        span = self._begin_action(action, args, kwargs)
        if span is None:
            return await wrapped(*args, **kwargs)
        try:
            with span.attached():
                result = await wrapped(*args, **kwargs)
        except BaseException as error:
            span.end(error)
            raise
        with guarded("recording the result of an action of MetaGPT"):
            _record(span, result)
        return result

    def _begin_action(self, action: Any, args: Any, kwargs: dict[str, Any]) -> ToolSpan | None:
        with guarded("recording an action of MetaGPT"):
            given = kwargs or {}
            if args:
                given = {"input": args[0] if len(args) == 1 else args, **given}
            elif not given and getattr(action, "i_context", None):
                context = action.i_context
                given = {"code": getattr(context, "code", None) or str(context)}
            return self.telemetry.tool(type(action).__name__, arguments=given)
        return None


def _record(span: ToolSpan, result: Any) -> None:
    """Code execution returns (output, success) or a result object with a summary and errors."""
    if isinstance(result, tuple) and len(result) == 2 and isinstance(result[1], bool):
        span.result(result[0])
        span.end(None if result[1] else str(result[0])[-500:] or "failed")
        return
    summary = getattr(result, "summary", None)
    if summary is not None:
        span.result({"summary": summary, "stdout": result.stdout, "stderr": result.stderr})
        span.end(str(result.stderr)[-500:] if result.stderr else None)
        return
    span.result(result)
    span.end()
