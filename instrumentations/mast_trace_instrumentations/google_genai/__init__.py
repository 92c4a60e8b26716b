"""Instrumentation of the Google Gen AI client, for Gemini's API and for Vertex.

`mast_trace_instrumentations.model_calls` describes who records a call when several could. One
`generate_content` may be several calls of the model, where the client executes functions by itself
in between: each of the calls and of the executions is recorded.
"""

from mast_trace_instrumentations.google_genai.patches import GoogleGenAIInstrumentor

__all__ = ["GoogleGenAIInstrumentor"]
