"""Instrumentation of LangGraph, and of the agents of LangChain that run on it.

Runs, agents, messages, hand-offs and interrupts are read where LangGraph executes graphs and nodes
(`run`, `agent`), tools where LangChain runs them (`tool`), model calls from LangChain's public
callbacks (`chat`). `graphs` decides which nodes and graphs count as agents.
"""

from mast_trace_instrumentations.langgraph.patches import LangGraphInstrumentor

__all__ = ["LangGraphInstrumentor"]
