"""Instrumentation of AG2 1.x (``import ag2``); the classic API is `mast_trace_instrumentations.autogen`."""

from mast_trace_instrumentations.ag2.patches import AG2Instrumentor

__all__ = ["AG2Instrumentor"]
