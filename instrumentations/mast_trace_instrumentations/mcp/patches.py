"""The patches of MCP's client sessions."""

from __future__ import annotations

from typing import Any

from mast_trace.spans import Call, Inside
from mast_trace_instrumentations.base import Args, Instrumentor, Kwargs, Patch
from mast_trace_instrumentations.mcp import tool

_SESSION = "mcp.client.session"


class MCPInstrumentor(Instrumentor):
    """Records tool calls of MCP sessions, unless the framework above records them."""

    framework = "mcp"
    distributions = ("mcp",)
    versions = ("1.9", "3")
    patches = (
        Patch(_SESSION, "ClientSession.call_tool", "begin_tool"),
        Patch(_SESSION, "ClientSession.initialize", "begin_session"),
        # One call of the program may call the session several times.
        Patch("mcp.client.client", "Client.call_tool", "begin_tool", optional="since 2.0"),
    )

    def begin_tool(self, session: Any, args: Args, kwargs: Kwargs) -> Call | None:
        """Begin a call of a tool."""
        session = getattr(session, "session", session)  # the method of a client
        return tool.begin(self.telemetry, session, *_called(*args, **kwargs))

    def begin_session(self, session: Any, _args: Args, _kwargs: Kwargs) -> Call:
        """Note the server's description of itself."""
        return Inside(end=lambda answer, _: tool.note_server(session, answer))


def _called(name: Any, arguments: Any = None, *_: Any, **__: Any) -> tuple[str, Any]:
    """Bind those arguments of `call_tool` that name the call, passed by position or by name."""
    return str(name), arguments
