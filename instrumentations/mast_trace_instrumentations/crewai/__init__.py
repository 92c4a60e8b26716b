"""Instrumentation of CrewAI: crews, flows, delegation and guardrails, from its own event bus."""

from mast_trace_instrumentations.crewai.patches import CrewAIInstrumentor

__all__ = ["CrewAIInstrumentor"]
