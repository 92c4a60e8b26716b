"""Instrumentation of MetaGPT 0.8: teams, roles, messages, executed code, model calls."""

from mast_trace_instrumentations.metagpt.patches import MetaGPTInstrumentor

__all__ = ["MetaGPTInstrumentor"]
