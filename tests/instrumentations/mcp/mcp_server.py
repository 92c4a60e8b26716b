"""A server of tools, over standard input and output."""

from __future__ import annotations

import os
from typing import Any


def make_server() -> Any:
    """Make the server with whichever class this version has."""
    try:
        from mcp.server.mcpserver import MCPServer as Server
    except ImportError:
        from mcp.server.fastmcp import FastMCP as Server

    server = Server("warehouse")

    @server.tool()
    def count_stock(part: str, shelf: int = 0) -> str:
        """Count how many of a part there are."""
        return f"{part}: {40 + shelf}"

    @server.tool()
    def order(part: str) -> str:
        """Order more of a part."""
        raise ValueError(f"nobody sells {part}")

    @server.tool()
    def burn_down() -> str:
        """End the process."""
        os._exit(3)

    return server


if __name__ == "__main__":
    make_server().run("stdio")
