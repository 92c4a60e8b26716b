"""Turns of agents, and the messages that begin and end them."""

from __future__ import annotations

from typing import Any

from mast_trace import semconv
from mast_trace.content import as_text
from mast_trace.messages import Message
from mast_trace.spans import AgentSpan, current_run
from mast_trace_instrumentations.crewai import reading, state
from mast_trace_instrumentations.crewai.run import RunEvents
from mast_trace_instrumentations.crewai.state import text


class AgentEvents(RunEvents):
    """Records events of agents, in crews and alone."""

    def _on_agent_execution_started(self, _source: Any, event: Any) -> None:
        agent = event.agent
        self._agent_started(
            role=reading.role_of(agent),
            agent_id=text(agent.id),
            goal=text(getattr(agent, "goal", None)),
            prompt=Message(event.task_prompt, role="user"),
            readers=reading.readers(event.task, agent),
        )

    def _on_agent_execution_completed(self, _source: Any, event: Any) -> None:
        self._agent_finished(text(event.agent.id), event.output)

    def _on_agent_execution_error(self, _source: Any, event: Any) -> None:
        self._agent_finished(text(event.agent.id), None, event.error)

    def _on_lite_agent_execution_started(self, _source: Any, event: Any) -> None:
        info = event.agent_info
        messages = reading.chat_messages(event.messages)
        prompt = messages[-1] if messages else Message("", role="user")
        role = text(info.get("role"))
        if current_run() is None:
            span = self._telemetry.run(role, input=[prompt])
            self._open("run", text(info.get("id")), span)
        self._agent_started(
            role=role,
            agent_id=text(info.get("id")),
            goal=text(info.get("goal")),
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
        agent_id = text(event.agent_info.get("id"))
        self._agent_finished(agent_id, output, error)
        run = state.top("run")
        if run is not None and run.key == agent_id:
            self._finish_run(run.key, termination, error)

    def _agent_started(
        self, *, role: str, agent_id: str, goal: str, prompt: Message, readers: list[str]
    ) -> None:
        # A guardrail that is written in prose asks an agent of its own.
        asking = state.top("agent", "guardrail", "run")
        requester = asking.notes.get("role", reading.USER) if asking else reading.USER
        asked = self._telemetry.message(requester, [role], prompt)
        span = self._telemetry.agent(
            role, agent_id=agent_id, description=goal or None, input=[prompt]
        )
        frame = self._open("agent", agent_id, span, agent_id)
        frame.notes.update(role=role, asked=asked, recipients=readers or [requester])

    def _agent_finished(self, agent_id: str, output: Any, error: Any = None) -> None:
        frame = state.pop("agent", agent_id)
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
