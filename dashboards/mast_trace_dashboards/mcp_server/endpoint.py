"""The MCP endpoint of the web view, for the same visitors as its pages."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from starlette.responses import Response

from mast_trace_collector.config import DEFAULT_RUN_IDLE
from mast_trace_dashboards.web.views import PerProject
from mast_trace_dashboards.web.visitor import Visitor, visitor_of

if TYPE_CHECKING:
    from mcp.server.mcpserver import Context
    from starlette.types import ASGIApp, Receive, Scope, Send

    from mast_trace_collector.storage import Store
    from mast_trace_dashboards.web.server import Mounted

PATH = "/mcp"


def endpoints(store: Store, *, writes: bool, idle: float) -> dict[str, Mounted]:
    """Return the endpoint under its path; nothing where the extra `mcp` is not installed."""
    if find_spec("mcp") is None:
        return {}
    return {PATH: MCPEndpoint(store, writes=writes, idle=idle)}


class MCPEndpoint:
    """Serves MCP over HTTP, behind the guard of the web view.

    Each request stands alone and sees the project of its own key: there are no sessions that the
    holder of another key could enter. The protocol's package is loaded by the first request.

    Args:
        store: the database, of all projects.
        writes: whether visitors with the right to label may record labels and outcomes.
        idle: seconds after which a run without a root counts as finished.
    """

    def __init__(
        self, store: Store, *, writes: bool = False, idle: float = DEFAULT_RUN_IDLE
    ) -> None:
        self._stores = PerProject(store, lambda its: its)
        self._writes = writes
        self._idle = idle
        self._opening = asyncio.Lock()
        self._app: ASGIApp | None = None
        self._running: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Return at once: the first request opens the endpoint."""

    async def stop(self) -> None:
        """End requests in flight; safe to call twice."""
        running, self._running = self._running, None
        if running is not None:
            running.cancel()
            with suppress(asyncio.CancelledError):
                await running

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request; a GET would open a stream, on which this server has nothing to say."""
        if scope["method"] != "POST":
            refused = Response("Only POST is served.\n", 405, {"allow": "POST"}, "text/plain")
            await refused(scope, receive, send)
            return
        async with self._opening:
            app = self._app or await self._open()
        await app({**scope, "path": PATH, "root_path": ""}, receive, send)

    async def _open(self) -> ASGIApp:
        from mcp.server.transport_security import TransportSecuritySettings

        from mast_trace_dashboards.mcp_server.server import server_for

        to_write = self._to_write if self._writes else None
        server = server_for(self._store_of, to_write, _annotator, self._idle)
        self._app = server.streamable_http_app(
            stateless_http=True,
            json_response=True,
            # The guard has checked host and origin.
            transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
        )
        manager, ready = server.session_manager, asyncio.Event()

        async def run() -> None:
            async with manager.run():
                ready.set()
                await asyncio.Event().wait()

        # Its task group must be entered and left by one task.
        self._running = asyncio.create_task(run())
        await ready.wait()
        return self._app

    def _store_of(self, ctx: Context[Any, Any]) -> Store:
        return self._stores.of(_visitor(ctx).project)

    def _to_write(self, ctx: Context[Any, Any]) -> Store:
        from mcp.server.mcpserver.exceptions import ToolError

        if not _visitor(ctx).labels:
            raise ToolError("You lack the right to label here. Ask the operator for a key with it.")
        return self._store_of(ctx)


def _visitor(ctx: Context[Any, Any]) -> Visitor:
    request = ctx.request_context.request
    if request is None:
        raise ValueError("The request has not come over HTTP.")
    return visitor_of(request)


def _annotator(ctx: Context[Any, Any]) -> str:
    visitor = _visitor(ctx)
    return f"{visitor.user or visitor.project or 'operator'} (MCP)"
