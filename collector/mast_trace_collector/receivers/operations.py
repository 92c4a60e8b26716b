"""Operational HTTP endpoints of a collector: liveness, readiness, metrics."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import orjson

from mast_trace_collector import telemetry
from mast_trace_collector.otlp.errors import Forbidden, Unauthenticated
from mast_trace_collector.receivers.otlp_http import JSON, respond
from mast_trace_collector.security import Right

if TYPE_CHECKING:
    from collections.abc import Callable

    from mast_trace_collector.http_server.asgi import ASGIApp, Message, Receive, Send
    from mast_trace_collector.receivers.ingest import Ingest

_TEXT = "text/plain; charset=utf-8"
_NOT_RECEIVED = {
    "/v1/logs": "this collector does not receive logs",
    "/v1/metrics": "this collector does not receive metrics; switch the metrics exporter off "
    "(OTEL_METRICS_EXPORTER=none)",
}


class Operations:
    """Serves ``/healthz``, ``/readyz`` and ``/metrics``; passes every other path on.

    Args:
        metrics: the content of ``/metrics``.
        ingest: checks keys; with keys, ``/metrics`` needs one with the right to it, because its
            numbers are of all projects.
        readiness: the answer of ``/readyz``; its "ready" decides the status.
        other: the application for all other paths, if there is one.
    """

    def __init__(
        self,
        metrics: telemetry.CollectorMetrics,
        ingest: Ingest,
        readiness: Callable[[], dict[str, Any]],
        other: ASGIApp | None = None,
    ) -> None:
        self._metrics = metrics
        self._ingest = ingest
        self._readiness = readiness
        self._other = other

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            return
        path = scope["path"]
        if path == "/healthz":
            await respond(send, 200, _TEXT, b"ok\n")
        elif path == "/readyz":
            # In a thread: it may wait for a disk that fails.
            state = await asyncio.to_thread(self._readiness)
            await respond(send, 200 if state["ready"] else 503, JSON, orjson.dumps(state))
        elif path == "/metrics":
            await self._show_metrics(scope, send)
        elif path in _NOT_RECEIVED:
            await _not_found(send, _NOT_RECEIVED[path])
        elif self._other is not None:
            await self._other(scope, receive, send)
        else:
            await _not_found(send, "OTLP is received at /v1/traces and /v1/logs")

    async def _show_metrics(self, scope: Message, send: Send) -> None:
        headers = dict(scope["headers"])
        try:
            shown = headers.get(b"authorization", b"").decode("latin-1")
            self._ingest.authenticate(shown, Right.METRICS)
        except (Unauthenticated, Forbidden) as error:
            content = orjson.dumps({"message": str(error)})
            asked = [(b"www-authenticate", b"Bearer")] if error.status == 401 else []
            await respond(send, error.status, JSON, content, *asked)
            return
        # In a thread: metrics registered by others may query the database.
        text = await asyncio.to_thread(self._metrics.exposition)
        await respond(send, 200, telemetry.CONTENT_TYPE, text)


async def _not_found(send: Send, message: str) -> None:
    await respond(send, 404, JSON, orjson.dumps({"message": message}))
