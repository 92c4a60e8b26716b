"""Instrumentation of LiteLLM, for all of its clients and protocols.

`mast_trace_instrumentations.model_calls` describes who records a call when several could. Retries
and fallbacks that LiteLLM makes inside of one call are part of it; a `Router` makes a call of its
own for each attempt, and each of them is recorded.
"""

from mast_trace_instrumentations.litellm.patches import LiteLLMInstrumentor

__all__ = ["LiteLLMInstrumentor"]
