"""MCP sessions with a real server in a process of its own, inside of a hand-made run."""

from __future__ import annotations

import sys
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recorded_spans import recorded_by

from mast_trace_instrumentations.mcp import MCPInstrumentor

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

SERVER = Path(__file__).with_name("mcp_server.py")

recorded = recorded_by(MCPInstrumentor)


@asynccontextmanager
async def a_session() -> AsyncIterator[Any]:
    """An initialized session with the server."""
    from mcp import ClientSession, StdioServerParameters
    from mcp.client.stdio import stdio_client

    about = StdioServerParameters(command=sys.executable, args=[str(SERVER)])
    async with stdio_client(about) as streams, ClientSession(*streams) as session:
        await session.initialize()
        yield session
