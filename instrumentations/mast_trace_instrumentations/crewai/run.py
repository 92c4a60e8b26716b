"""Crews and flows: the beginning and end of runs, and their plans."""

from __future__ import annotations

from typing import Any

from mast_trace import semconv
from mast_trace.content import as_text, joined
from mast_trace.messages import Message
from mast_trace.spans import current_run
from mast_trace_instrumentations.crewai import reading, state
from mast_trace_instrumentations.crewai.message import MessageEvents
from mast_trace_instrumentations.crewai.state import text

MAX_TURNS = "crewai.max_turns"
"""The mark of a run in which an agent was stopped by its iteration limit."""


class RunEvents(MessageEvents):
    """Records events of crews, tasks and flows."""

    def _on_crew_kickoff_started(self, crew: Any, event: Any) -> None:
        asked = reading.task_text(crew)
        if getattr(event, "inputs", None):
            asked = joined("\n\n", (asked, as_text(event.inputs)))
        span = self._telemetry.run(
            str(event.crew_name or "crew"),
            input=[Message(asked, role="user")],
            attributes={"crewai.crew.process": str(getattr(crew.process, "value", crew.process))},
        )
        tasks = [text(task.id) for task in crew.tasks]
        agents = [text(agent.id) for agent in crew.agents]
        frame = self._open("run", id(crew), span, *tasks, *agents)
        frame.notes["open"] = reading.plan(crew)

    def _on_task_completed(self, task: Any, event: Any) -> None:
        run = state.top("run")
        if run is not None:
            done = getattr(event, "task", None) or task
            run.notes.get("open", {}).pop(text(getattr(done, "id", None)), None)

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

    def _finish_run(self, key: Any, termination: str, error: Any = None) -> None:
        frame = state.pop("run", key)
        if frame is None:
            return
        run = current_run(frame.span.context)
        if error is None and run is not None and MAX_TURNS in run.marks:
            termination = semconv.Termination.MAX_TURNS
        unfinished = list(frame.notes.get("open", {}).values())
        frame.span.set(
            {
                semconv.RUN_TERMINATION_REASON: termination,
                semconv.PLAN_OPEN_ITEMS: unfinished or None,
            }
        )
        frame.span.end(error)
