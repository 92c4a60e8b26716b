"""The web view's server."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from mast_trace_collector.config import DEFAULT_RUN_IDLE
from mast_trace_collector.http_server.server import HTTPServer
from mast_trace_dashboards.web.access import Access
from mast_trace_dashboards.web.app import web_app

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

    from mast_trace_collector.http_server.limits import HTTPLimits
    from mast_trace_collector.settings import ProcessSettings
    from mast_trace_collector.storage import Store
    from mast_trace_dashboards.web.config import WebConfig


class Mounted(Protocol):
    """An application beside the pages, which begins and ends with the server."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send, /) -> None:
        """Serve one request."""

    async def start(self) -> None:
        """Accept requests from now on."""

    async def stop(self) -> None:
        """End requests in flight; safe to call twice."""


class WebView:
    """Serves the web view on a store.

    Args:
        store: of all projects; the caller closes it.
        config: the settings.
        keys_file: keys of projects; None if there are none.
        idle: seconds after which a run without a root counts as finished.
        open_beside_keys: whether a view on loopback without token stays open though there are keys.
        limits: of connections.
        refused: called with the reason, one word, for which a connection or a request was refused.
        mounted: further applications by path, for the same visitors.
        settings: of this process, for the page that shows them.

    Raises:
        ConfigurationError: strangers could read, or a file cannot be used.
    """

    def __init__(
        self,
        store: Store,
        config: WebConfig,
        keys_file: Path | None = None,
        *,
        idle: float = DEFAULT_RUN_IDLE,
        open_beside_keys: bool = False,
        limits: HTTPLimits | None = None,
        refused: Callable[[str], None] = lambda _: None,
        mounted: Mapping[str, Mounted] | None = None,
        settings: Sequence[ProcessSettings] = (),
    ) -> None:
        self._mounted = tuple((mounted or {}).values())
        access = Access.of(config, keys_file, open_beside_keys=open_beside_keys)
        self.is_open = access.is_open
        self.ways_in = "" if access.is_open else config.ways_in(keys_file)
        self._host = f"[{config.shown_host}]" if ":" in config.shown_host else config.shown_host
        self._server = HTTPServer(
            web_app(store, access, idle=idle, mounted=mounted, settings=(config, *settings)),
            config.web_host,
            config.web_port,
            limits=limits,
            tls=config.tls,
            refused=refused,
        )

    @property
    def address(self) -> str:
        """URL under which it answers; empty before the start."""
        scheme, _, place = self._server.address.partition("://")
        return f"{scheme}://{self._host}:{place.rpartition(':')[2]}" if place else ""

    async def start(self) -> None:
        """Listen.

        Raises:
            ConfigurationError: the address cannot be listened on.
        """
        for other in self._mounted:
            await other.start()
        await self._server.start()

    async def stop(self) -> None:
        """Accept no more connections and answer requests in flight; safe to call twice."""
        await self._server.stop()
        for other in self._mounted:
            await other.stop()
