"""Executions of tools, and calls of tools that are never executed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from opentelemetry import context as otel_context

from mast_trace import semconv
from mast_trace.spans import Run, Telemetry, ToolSpan, current_agent, current_run, with_agent
from mast_trace_instrumentations.langgraph import reading
from mast_trace_instrumentations.langgraph.routing import (
    commanded_nodes,
    goals_of,
    is_command,
    utter,
)
from mast_trace_instrumentations.langgraph.state import (
    NodeScope,
    ToolScope,
    current_scope,
    is_control_flow,
    memory_of,
    with_scope,
)

if TYPE_CHECKING:
    from opentelemetry.context import Context


_CALL = "mast-trace-langgraph-call"
_DESTINATION = "__handoff_destination"


@dataclass(eq=False)
class RequestedCall:
    """A model's call of a tool, as handled by a `ToolNode`.

    Attributes:
        call: LangChain's `ToolCall`.
        ran: whether it was executed.
        failed: the span of an execution that raised; kept open, because the text that the
            `ToolNode` makes of the error belongs on it.
        error: the exception that it raised.
    """

    call: Any
    ran: bool = False
    failed: ToolSpan | None = None
    error: BaseException | None = None


def with_call(call: RequestedCall) -> Context:
    """Return the current context with ``call`` in it."""
    return otel_context.set_value(_CALL, call)


def _current_call(call_id: Any) -> RequestedCall | None:
    value = otel_context.get_value(_CALL)
    if isinstance(value, RequestedCall) and value.call.get("id") == call_id:
        return value
    return None


def begin_tool(
    telemetry: Telemetry, tool: Any, given: Any, call_id: str | None
) -> ToolScope | None:
    """Begin the execution of a tool; None outside of any run, and in runs of other frameworks.

    Other frameworks run LangChain's tools too, and record them as their own.

    Args:
        telemetry: makes the span.
        tool: LangChain's `BaseTool`.
        given: its arguments, injected ones included.
        call_id: the model's id of the call.
    """
    context = otel_context.get_current()
    around = current_scope(context)
    run = current_run(context)
    if run is None or (around is None and _is_foreign(run)):
        return None
    call = _current_call(call_id)
    if call is not None:
        end_failed(call, None)  # an earlier attempt, by a middleware that retries
        call.ran = True
    memory = memory_of(context)
    asker, asked = memory.asked.get(call_id or "", ("", None))
    agent = current_agent(context) or asker
    destination = (tool.metadata or {}).get(_DESTINATION)
    span = telemetry.tool(
        str(tool.name),
        parent=context,
        arguments=_arguments(tool, given, asked),
        call_id=call_id,
        agent=agent or None,
        description=tool.description or None,
        handoff=(agent, str(destination)) if destination else None,
    )
    scope = ToolScope(telemetry, span, agent, memory, span.context, around)
    if agent and current_agent(context) is None:
        scope.context = with_agent(agent, scope.context)
    scope.context = with_scope(scope, scope.context)
    return scope


def _is_foreign(run: Run) -> bool:
    begun_by = (getattr(run.root, "attributes", None) or {}).get(semconv.FRAMEWORK)
    return begun_by not in {None, "langgraph"}


def _arguments(tool: Any, given: Any, asked: Any) -> Any:
    """Return the arguments without those that LangGraph injects: state, store and runtime.

    The model's request has the names of the arguments; the arguments of a call that no model made
    are filtered by the tool itself.
    """
    if not isinstance(given, dict):
        return given
    if isinstance(asked, dict):
        return {name: given.get(name) for name in asked}
    if hasattr(tool, "_filter_injected_args"):
        return tool._filter_injected_args(given)  # noqa: SLF001
    return {name: value for name, value in given.items() if _is_plain(value)}


def _is_plain(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return all(_is_plain(item) for item in value)
    if isinstance(value, dict):
        return all(_is_plain(item) for item in value.values())
    return value is None or isinstance(value, str | int | float | bool)


def end_tool(
    scope: ToolScope, call_id: str | None, output: Any, error: BaseException | None
) -> None:
    """End the execution with its result or its error."""
    utter(scope.telemetry, scope.pending, [scope.agent] if scope.agent else [])
    if error is not None and not is_control_flow(error):
        call = _current_call(call_id)
        if call is None:
            scope.span.end(error)
        else:
            call.failed, call.error = scope.span, error
        return
    if error is None:
        record_result(scope.span, output, call_id)
        _note_handoff(scope, output)
    scope.span.end()


def record_result(span: ToolSpan, output: Any, call_id: str | None) -> None:
    """Write the result of a tool call on its span."""
    message = _answer(output, call_id)
    if message is None:
        if not is_command(output):
            text = reading.value_text(output)
            span.result(text)
            if call_id is None:  # the program has called it, and gets the value
                span.typed(output, text)
        return
    text = reading.text_of(message.content)
    span.result(text)
    if getattr(message, "status", "") == "error":
        span.fail(text)


def _answer(output: Any, call_id: str | None) -> Any:
    """Find the tool's message in its output: the output itself, or inside of a `Command`."""
    for item in output if isinstance(output, list) else [output]:
        for given in _payloads(item):
            for message in reading.messages_in(given):
                if call_id is None or getattr(message, "tool_call_id", None) == call_id:
                    return message
    return None


def _payloads(item: Any) -> list[Any]:
    """The content of a `Command`: its update of the state, and its `Send` to single nodes."""
    if not is_command(item):
        return [item]
    return [item.update, *(goal.arg for goal in goals_of(item) if hasattr(goal, "arg"))]


def _note_handoff(scope: ToolScope, output: Any) -> None:
    """Write a hand-off on the tool's span: the tool may return a `Command` with a destination."""
    for item in output if isinstance(output, list) else [output]:
        targets = commanded_nodes(item)
        if targets:
            scope.span.set(
                {
                    semconv.HANDOFF_SOURCE: scope.agent or None,
                    semconv.HANDOFF_TARGET: ", ".join(targets),
                }
            )
            if isinstance(scope.outer, NodeScope):
                scope.outer.handed_off = True


def end_failed(call: RequestedCall, output: Any) -> None:
    """End the span of a failed execution, with the text that the model was shown."""
    if call.failed is None:
        return
    message = _answer(output, call.call.get("id"))
    if message is not None:
        call.failed.result(reading.text_of(message.content))
    call.failed.end(call.error)
    call.failed = call.error = None


def end_call(
    telemetry: Telemetry, call: RequestedCall, output: Any, error: BaseException | None
) -> None:
    """Leave a `ToolNode`: record a call that was never executed as a tool call all the same."""
    end_failed(call, output)
    context = otel_context.get_current()
    if call.ran or is_control_flow(error) or current_run(context) is None:
        return
    asker, _ = memory_of(context).asked.get(call.call.get("id") or "", ("", None))
    span = telemetry.tool(
        str(call.call.get("name")),
        parent=context,
        arguments=call.call.get("args"),
        call_id=call.call.get("id"),
        agent=current_agent(context) or asker or None,
    )
    if error is None:
        record_result(span, output, call.call.get("id"))
    span.end(error)
