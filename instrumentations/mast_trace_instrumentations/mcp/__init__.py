"""Instrumentation of MCP client sessions: tool calls that nothing above them records.

Frameworks execute a server's tools as their own, and their instrumentation records the call. A call
without one, by a node, an agent without tools or a hand-made agent, is recorded here. The
protocol's messages are not changed.
"""

from mast_trace_instrumentations.mcp.patches import MCPInstrumentor

__all__ = ["MCPInstrumentor"]
