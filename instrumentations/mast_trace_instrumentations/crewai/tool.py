"""Tool calls and guardrails.

CrewAI emits events for tools that it runs. It emits none for a call that it refuses beforehand
(arguments that are no JSON, an unknown tool, a repetition). Therefore the functions that take a
call from the model are wrapped: a call without events is recorded when they return.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from mast_trace import semconv
from mast_trace.messages import ToolCall, parsed
from mast_trace.spans import Call, Inside, OpenSpan, ToolSpan, restore
from mast_trace_instrumentations.crewai import reading, state
from mast_trace_instrumentations.crewai.state import Recorder, text

_REMEMBERED = 256
_DELEGATIONS = ("delegate work to coworker", "ask question to coworker")


@dataclass
class _Requested:
    """A call that the model asks for.

    Attributes:
        call: name, arguments and id, as the model wrote them.
        begun: number of times that the framework began to run it; old versions try three times.
    """

    call: ToolCall
    begun: int = 0


# Threads that run the tool share the object through their copy of the context.
_requested: ContextVar[_Requested | None] = ContextVar("mast_trace_crewai_call", default=None)


class ToolEvents(Recorder):
    """Records events of tools and guardrails."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._refused: OrderedDict[str, str] = OrderedDict()

    def refused(self, result: str, reason: str) -> None:
        """Note that a tool's result is an error, although the framework takes it for a good one."""
        self._refused[result] = reason
        if len(self._refused) > _REMEMBERED:
            self._refused.popitem(last=False)

    def watch(self, call: ToolCall, agent: Any, shown: Callable[[Any], Any]) -> Call:
        """Wrap the execution of one call of a tool.

        Args:
            call: as the model wrote it.
            agent: the agent that asks for it.
            shown: reads the text for the model from the result.
        """
        if state.is_cut_off():
            state.adopt(text(getattr(agent, "id", None)))
        depth = len(state.frames())
        requested = _Requested(call)
        token = _requested.set(requested)

        def end(result: Any, error: BaseException | None) -> None:
            restore(token)
            words = error if error is not None else text(shown(result))
            left_open = state.unwind(depth)
            if not requested.begun:
                self._not_run(call, words)
            for frame in left_open:
                _fail(frame.span, words)

        return Inside(end=end)

    def _not_run(self, call: ToolCall, problem: BaseException | str) -> None:
        """Record a call that the framework has refused to run."""
        span = self._telemetry.tool(call.name, arguments=call.arguments, call_id=call.id)
        _fail(span, problem)

    def _on_tool_usage_started(self, _source: Any, event: Any) -> None:
        requested = _requested.get()
        if requested is not None:
            requested.begun += 1
        agent = state.top("agent")
        role = text(event.agent_role) or (agent.notes["role"] if agent else None)
        span = self._telemetry.tool(
            event.tool_name,
            arguments=event.tool_args,
            call_id=requested.call.id if requested else None,
            agent=role,
            handoff=_delegation(role, event.tool_name, event.tool_args),
        )
        self._open("tool", None, span)

    def _on_tool_usage_finished(self, _source: Any, event: Any) -> None:
        frame = state.pop("tool")
        if frame is None or not isinstance(frame.span, ToolSpan):
            return
        frame.span.result(event.output)
        frame.span.set({"crewai.tool.from_cache": event.from_cache or None})
        refusal = self._refused.pop(text(event.output), None)
        frame.span.end(
            _failure(getattr(event, "failure", None))
            or refusal
            or reading.refusal(event.tool_name, event.output)
        )

    def _on_tool_usage_error(self, _source: Any, event: Any) -> None:
        frame = state.pop("tool")
        if frame is not None:
            _fail(
                frame.span,
                event.error if isinstance(event.error, Exception) else text(event.error),
            )

    # -- guardrails -------------------------------------------------------------------------------

    def _on_llm_guardrail_started(self, _source: Any, event: Any) -> None:
        name = text(getattr(event, "guardrail_name", None)) or "guardrail"
        span = self._telemetry.tool(
            name,
            description=text(event.guardrail) or None,
            attributes={
                semconv.TOOL_TYPE: "guardrail",
                "crewai.guardrail.retry_count": event.retry_count,
            },
        )
        self._open("guardrail", None, span).notes["role"] = "guardrail"

    def _on_llm_guardrail_completed(self, _source: Any, event: Any) -> None:
        frame = state.pop("guardrail")
        if frame is not None and isinstance(frame.span, ToolSpan):
            frame.span.result("passed" if event.success else text(event.error))
            frame.span.end(None if event.success else f"blocked: {event.error}")

    def _on_llm_guardrail_failed(self, _source: Any, event: Any) -> None:
        frame = state.pop("guardrail")
        if frame is not None:
            frame.span.end(text(event.error))


def _fail(span: OpenSpan, error: BaseException | str) -> None:
    if isinstance(span, ToolSpan):
        span.result(text(error))
    span.end(error)


def _delegation(role: str | None, tool: str, arguments: Any) -> tuple[str, str] | None:
    """Return the two agents of a delegation, if the tool is one of CrewAI's two delegation tools."""
    if tool.replace("_", " ").lower() not in _DELEGATIONS:
        return None
    given = parsed(arguments)
    if not isinstance(given, dict):
        return None
    coworker = given.get("coworker") or given.get("co_worker")
    return (role or "", str(coworker)) if coworker else None


def _failure(failure: Any) -> str | None:
    if failure is None:
        return None
    return text(getattr(failure, "message", None) or getattr(failure, "reason", None) or failure)
