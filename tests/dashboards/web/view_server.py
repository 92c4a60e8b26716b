"""Serves the web view of a store, or another application, over loopback."""

from __future__ import annotations

import asyncio
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from mast_trace_collector.http_server.server import HTTPServer
from mast_trace_dashboards.web.app import web_app

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from starlette.types import ASGIApp

    from mast_trace_collector.storage import Store
    from mast_trace_dashboards.web.access import Access


@contextmanager
def loop_of_its_own() -> Iterator[Callable[..., Any]]:
    """A loop in a thread; what it is given awaits a coroutine there."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    yield lambda work: asyncio.run_coroutine_threadsafe(work, loop).result(30)
    loop.call_soon_threadsafe(loop.stop)
    thread.join(30)
    loop.close()


def serve(store: Store, access: Access | None = None) -> Iterator[str]:
    yield from serve_app(web_app(store, access))


def serve_app(app: ASGIApp) -> Iterator[str]:
    with loop_of_its_own() as awaited:
        server = HTTPServer(app, "127.0.0.1", 0)
        awaited(server.start())
        yield server.address
        awaited(server.stop())
