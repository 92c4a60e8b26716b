"""What each event of CrewAI means for the trace.

One method per event type, named ``_on_<type>``; other events are none of ours.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any

from opentelemetry import context as otel_context

from mast_trace import semconv
from mast_trace.content import as_text
from mast_trace.messages import Message, parsed
from mast_trace.run_state import current_run
from mast_trace.spans import AgentSpan, ChatSpan, ToolSpan
from mast_trace_instrumentations.crewai import reading, stack
from mast_trace_instrumentations.crewai.stack import Frame

if TYPE_CHECKING:
    from mast_trace.spans import OpenSpan, Telemetry

MAX_TURNS = "crewai.max_turns"
_REMEMBERED = 256
_DELEGATIONS = ("delegate work to coworker", "ask question to coworker")


class EventRecorder:
    """Turns the stream of events into spans."""

    def __init__(self, telemetry: Telemetry) -> None:
        self._telemetry = telemetry
        self._refused: OrderedDict[str, str] = OrderedDict()

    def refused(self, result: str, reason: str) -> None:
        """Note that a tool's result, which the framework takes for a good one, is an error."""
        self._refused[result] = reason
        if len(self._refused) > _REMEMBERED:
            self._refused.popitem(last=False)

    def record(self, source: Any, event: Any) -> None:
        """Record one event; unknown ones do nothing."""
        handler = getattr(self, f"_on_{event.type}", None)
        if handler is not None:
            agent_id = getattr(event, "agent_id", None) or getattr(
                getattr(event, "agent", None), "id", None
            )
            stack.adopt(_text(agent_id), _text(getattr(event, "task_id", None)))
            handler(source, event)

    # -- runs -------------------------------------------------------------------------------------

    def _on_crew_kickoff_started(self, crew: Any, event: Any) -> None:
        asked = reading.task_text(crew)
        if getattr(event, "inputs", None):
            asked = f"{asked}\n\n{as_text(event.inputs)}"
        span = self._telemetry.run(
            str(event.crew_name or "crew"),
            input=[Message(asked, role="user")],
            attributes={"crewai.crew.process": str(getattr(crew.process, "value", crew.process))},
        )
        tasks = [_text(task.id) for task in crew.tasks]
        agents = [_text(agent.id) for agent in crew.agents]
        self._open("run", id(crew), span, *tasks, *agents)

    def _on_crew_kickoff_completed(self, crew: Any, _event: Any) -> None:
        self._finish_run(id(crew), semconv.Termination.COMPLETED)

    def _on_crew_kickoff_failed(self, crew: Any, event: Any) -> None:
        self._finish_run(id(crew), semconv.Termination.ERROR, event.error)

    def _on_flow_started(self, flow: Any, event: Any) -> None:
        if reading.is_agent_loop(flow):
            return
        asked = [Message(as_text(event.inputs), role="user")] if event.inputs else []
        self._open("run", id(flow), self._telemetry.run(event.flow_name, input=asked))

    def _on_flow_finished(self, flow: Any, _event: Any) -> None:
        self._finish_run(id(flow), semconv.Termination.COMPLETED)

    def _on_flow_failed(self, flow: Any, event: Any) -> None:
        self._finish_run(id(flow), semconv.Termination.ERROR, event.error)

    def _on_flow_paused(self, flow: Any, _event: Any) -> None:
        self._finish_run(id(flow), semconv.Termination.INTERRUPTED)

    def _finish_run(self, key: int, termination: str, error: Any = None) -> None:
        frame = stack.pop("run", key)
        if frame is None:
            return
        run = current_run(frame.span.context)
        if error is None and run is not None and MAX_TURNS in run.marks:
            termination = semconv.Termination.MAX_TURNS
        frame.span.set({semconv.RUN_TERMINATION_REASON: termination})
        frame.span.end(error)

    # -- agents -----------------------------------------------------------------------------------

    def _on_agent_execution_started(self, _source: Any, event: Any) -> None:
        agent = event.agent
        self._agent_started(
            role=reading.role_of(agent),
            agent_id=_text(agent.id),
            goal=_text(getattr(agent, "goal", None)),
            prompt=Message(event.task_prompt, role="user"),
            readers=reading.readers(event.task, agent),
        )

    def _on_agent_execution_completed(self, _source: Any, event: Any) -> None:
        self._agent_finished(_text(event.agent.id), event.output)

    def _on_agent_execution_error(self, _source: Any, event: Any) -> None:
        self._agent_finished(_text(event.agent.id), None, event.error)

    def _on_lite_agent_execution_started(self, _source: Any, event: Any) -> None:
        info = event.agent_info
        messages = reading.chat_messages(event.messages)
        prompt = messages[-1] if messages else Message("", role="user")
        role = _text(info.get("role"))
        if current_run() is None:
            span = self._telemetry.run(role, input=[prompt])
            self._open("run", _text(info.get("id")), span)
        self._agent_started(
            role=role,
            agent_id=_text(info.get("id")),
            goal=_text(info.get("goal")),
            prompt=prompt,
            readers=[],
        )

    def _on_lite_agent_execution_completed(self, _source: Any, event: Any) -> None:
        self._lite_agent_finished(event, semconv.Termination.COMPLETED, output=event.output)

    def _on_lite_agent_execution_error(self, _source: Any, event: Any) -> None:
        self._lite_agent_finished(event, semconv.Termination.ERROR, error=event.error)

    def _lite_agent_finished(
        self, event: Any, termination: str, *, output: Any = None, error: Any = None
    ) -> None:
        agent_id = _text(event.agent_info.get("id"))
        self._agent_finished(agent_id, output, error)
        run = stack.top("run")
        if run is not None and run.key == agent_id:
            self._finish_run(run.key, termination, error)

    def _agent_started(
        self, *, role: str, agent_id: str, goal: str, prompt: Message, readers: list[str]
    ) -> None:
        asking = stack.top("agent", "run")
        requester = asking.notes.get("role", reading.USER) if asking else reading.USER
        asked = self._telemetry.message(requester, [role], prompt)
        span = self._telemetry.agent(
            role, agent_id=agent_id, description=goal or None, input=[prompt]
        )
        frame = self._open("agent", agent_id, span, agent_id)
        frame.notes.update(role=role, asked=asked, recipients=readers or [requester])

    def _agent_finished(self, agent_id: str, output: Any, error: Any = None) -> None:
        frame = stack.pop("agent", agent_id)
        if frame is None or not isinstance(frame.span, AgentSpan):
            return
        if output is not None:
            reply = Message(as_text(output))
            self._telemetry.message(
                frame.notes["role"],
                frame.notes["recipients"],
                reply,
                parent=frame.span.context,
                in_reply_to=frame.notes["asked"],
            )
            frame.span.reply(reply)
        frame.span.end(error)

    # -- tools ------------------------------------------------------------------------------------

    def _on_tool_usage_started(self, _source: Any, event: Any) -> None:
        agent = stack.top("agent")
        role = _text(event.agent_role) or (agent.notes["role"] if agent else None)
        span = self._telemetry.tool(
            event.tool_name,
            arguments=event.tool_args,
            agent=role,
            handoff=_delegation(role, event.tool_name, event.tool_args),
        )
        self._open("tool", None, span)

    def _on_tool_usage_finished(self, _source: Any, event: Any) -> None:
        frame = stack.pop("tool")
        if frame is None or not isinstance(frame.span, ToolSpan):
            return
        frame.span.result(event.output)
        frame.span.set({"crewai.tool.from_cache": event.from_cache or None})
        refusal = self._refused.pop(_text(event.output), None)
        frame.span.end(_failure(getattr(event, "failure", None)) or refusal)

    def _on_tool_usage_error(self, _source: Any, event: Any) -> None:
        frame = stack.pop("tool")
        if frame is not None and isinstance(frame.span, ToolSpan):
            frame.span.result(as_text(_text(event.error)))
            frame.span.end(
                event.error if isinstance(event.error, Exception) else _text(event.error)
            )

    # -- models -----------------------------------------------------------------------------------

    def _on_llm_call_started(self, source: Any, event: Any) -> None:
        model = _text(getattr(event, "model", None) or getattr(source, "model", None))
        agent = stack.top("agent")
        span = self._telemetry.chat(
            model,
            agent=_text(event.agent_role) or (agent.notes["role"] if agent else None),
            input=reading.chat_messages(event.messages),
        )
        self._open("chat", getattr(event, "call_id", None), span)

    def _on_llm_call_completed(self, _source: Any, event: Any) -> None:
        frame = stack.pop("chat", getattr(event, "call_id", None))
        if frame is None or not isinstance(frame.span, ChatSpan):
            return
        usage = getattr(event, "usage", None) or {}
        frame.span.response(
            reading.answer(event.response),
            response_id=getattr(event, "response_id", None),
            finish_reason=getattr(event, "finish_reason", None),
            input_tokens=_first(usage, "prompt_tokens", "input_tokens"),
            output_tokens=_first(usage, "completion_tokens", "output_tokens"),
            cached_tokens=_first(usage, "cached_prompt_tokens", "cache_read_input_tokens"),
        )
        frame.span.end()

    def _on_llm_call_failed(self, _source: Any, event: Any) -> None:
        # Some versions report one failure twice; the second finds no open call and does nothing.
        frame = stack.pop("chat", getattr(event, "call_id", None))
        if frame is not None:
            frame.span.end(_text(event.error))

    # -- guardrails -------------------------------------------------------------------------------

    def _on_llm_guardrail_started(self, _source: Any, event: Any) -> None:
        name = _text(getattr(event, "guardrail_name", None)) or "guardrail"
        span = self._telemetry.tool(
            name,
            attributes={
                semconv.TOOL_TYPE: "guardrail",
                "crewai.guardrail.retry_count": event.retry_count,
            },
        )
        self._open("guardrail", None, span)

    def _on_llm_guardrail_completed(self, _source: Any, event: Any) -> None:
        frame = stack.pop("guardrail")
        if frame is not None and isinstance(frame.span, ToolSpan):
            frame.span.result("passed" if event.success else _text(event.error))
            frame.span.end(None if event.success else f"blocked: {event.error}")

    def _on_llm_guardrail_failed(self, _source: Any, event: Any) -> None:
        frame = stack.pop("guardrail")
        if frame is not None:
            frame.span.end(_text(event.error))

    def _open(self, kind: str, key: Any, span: OpenSpan, *owner_ids: str) -> Frame:
        frame = Frame(kind, key, span, otel_context.get_current())
        stack.push(frame, *owner_ids)
        return frame


def _delegation(role: str | None, tool: str, arguments: Any) -> tuple[str, str] | None:
    """Return who hands work to whom, if the tool is one of CrewAI's two delegation tools."""
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
    return _text(getattr(failure, "message", None) or getattr(failure, "reason", None) or failure)


def _first(usage: Any, *names: str) -> int | None:
    for name in names:
        value = usage.get(name) if isinstance(usage, dict) else getattr(usage, name, None)
        if isinstance(value, int):
            return value
    return None


def _text(value: Any) -> str:
    return "" if value is None else str(value)
