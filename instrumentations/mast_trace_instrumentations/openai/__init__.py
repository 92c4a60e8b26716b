"""Instrumentation of the OpenAI client, for calls that nothing above it records.

`mast_trace_instrumentations.model_calls` describes who records a call when several could.
"""

from mast_trace_instrumentations.openai.patches import OpenAIInstrumentor

__all__ = ["OpenAIInstrumentor"]
