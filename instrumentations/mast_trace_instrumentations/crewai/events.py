"""Handlers of CrewAI's events.

Each event type has a method ``_on_<type>`` in `run`, `agent`, `tool`, `chat` or `message`; other
events are ignored.
"""

from __future__ import annotations

from typing import Any

from mast_trace_instrumentations.crewai import state
from mast_trace_instrumentations.crewai.agent import AgentEvents
from mast_trace_instrumentations.crewai.chat import ModelEvents
from mast_trace_instrumentations.crewai.recorder import text
from mast_trace_instrumentations.crewai.tool import ToolEvents


class EventRecorder(AgentEvents, ToolEvents, ModelEvents):
    """Turns the stream of events into spans."""

    def record(self, source: Any, event: Any) -> None:
        """Record one event; unknown types are ignored."""
        handler = getattr(self, f"_on_{event.type}", None)
        if handler is None:
            return
        if state.is_cut_off():
            state.adopt(_owner(event, "agent"), _owner(event, "task"))
        handler(source, event)


def _owner(event: Any, kind: str) -> str:
    """Return the id of an event's agent or task: on the event itself, or on an object that it holds."""
    own = getattr(event, f"{kind}_id", None)
    return text(own or getattr(getattr(event, kind, None), "id", None))
