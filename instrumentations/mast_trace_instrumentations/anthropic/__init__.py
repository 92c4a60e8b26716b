"""Instrumentation of the Anthropic client, including its classes for Bedrock and Vertex.

`mast_trace_instrumentations.model_calls` describes who records a call when several could.
"""

from mast_trace_instrumentations.anthropic.patches import AnthropicInstrumentor

__all__ = ["AnthropicInstrumentor"]
