"""Instrumentation of AG2's classic API (``import autogen``): chats, group chats, tools, hand-offs."""

from mast_trace_instrumentations.autogen.patches import AutogenInstrumentor

__all__ = ["AutogenInstrumentor"]
