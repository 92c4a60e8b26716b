"""Serves the web view of a store over loopback."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING

from mast_trace_collector.http_server.server import HTTPServer
from mast_trace_dashboards.web.app import web_app

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mast_trace_collector.storage import Store
    from mast_trace_dashboards.web.access import Access


def serve(store: Store, access: Access | None = None) -> Iterator[str]:
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    server = HTTPServer(web_app(store, access), "127.0.0.1", 0)
    asyncio.run_coroutine_threadsafe(server.start(), loop).result(20)
    yield server.address
    asyncio.run_coroutine_threadsafe(server.stop(), loop).result(20)
    loop.call_soon_threadsafe(loop.stop)
    thread.join(20)
    loop.close()
