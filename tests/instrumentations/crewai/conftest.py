"""CrewAI, recorded into memory."""

from __future__ import annotations

from client_peers import elsewhere
from recorded_spans import recorded_by

from mast_trace_instrumentations.crewai import CrewAIInstrumentor

__all__ = ["elsewhere"]

recorded = recorded_by(CrewAIInstrumentor)
