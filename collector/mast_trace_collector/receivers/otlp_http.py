"""OTLP over HTTP, and the collector's operational endpoints, as ASGI applications."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import orjson
from google.protobuf.json_format import MessageToJson
from google.rpc.status_pb2 import Status

from mast_trace_collector import telemetry
from mast_trace_collector.http_server.limits import ASGIApp, Message, Pace, Receive, Send
from mast_trace_collector.otlp.errors import (
    Forbidden,
    RequestError,
    TooLarge,
    TooSlow,
    Unauthenticated,
    UnsupportedMediaType,
)
from mast_trace_collector.receivers.memory import MemoryReservation, sender_of
from mast_trace_collector.security import Right
from mast_trace_collector.spool import RequestRefused

if TYPE_CHECKING:
    from mast_trace_collector.config import CollectorConfig
    from mast_trace_collector.otlp.signals import Signal
    from mast_trace_collector.receivers.ingest import Ingest


PROTOBUF = "application/x-protobuf"
JSON = "application/json"
_TRANSPORT = "http"


class Disconnected(Exception):
    """The sender has disconnected."""


class Body:
    """Reads one body.

    Args:
        receive: the ASGI channel that it comes from.
        config: limits.
    """

    def __init__(self, receive: Receive, config: CollectorConfig) -> None:
        self._receive = receive
        self._loop = asyncio.get_running_loop()
        self._task: asyncio.Task[object] | None = None
        self._watching: asyncio.TimerHandle
        self._slow: TooSlow | None = None
        self._limit = config.max_body_bytes
        self._timeout = config.request_timeout_seconds
        self._until = time.monotonic() + self._timeout
        self._pace = Pace(config.body_grace_seconds, config.min_body_bytes_per_second)
        self._chunks: list[bytes] = []
        self._size = 0
        self._complete = False

    async def read(self, declared: int | None, memory: MemoryReservation) -> bytes:
        """Read it to its end; memory is reserved as it arrives.

        Raises:
            RequestError: it is too large, or arrives too slowly.
            Refused: there is no memory for it.
            Disconnected: the sender has disconnected.
        """
        if declared is not None and declared > self._limit:
            raise self._too_large()
        self._task = asyncio.current_task()
        memory.arriving(self._stop)
        self._watch()
        try:
            while not self._complete:
                chunk = await self._next()
                if self._size > self._limit:
                    raise self._too_large()
                memory.grow(len(chunk))
                self._chunks.append(chunk)
            return self._chunks[0] if len(self._chunks) == 1 else b"".join(self._chunks)
        except asyncio.CancelledError:
            reason = memory.broken_off or self._slow
            if reason is None:
                raise
            # This request itself caused the cancellation, not the owner of the task.
            if self._task is not None and hasattr(self._task, "uncancel"):
                self._task.uncancel()
            raise reason from None
        finally:
            self._watching.cancel()
            memory.arrived()
            self._chunks = []

    def _watch(self) -> None:
        """Check the rate when the period ends, or when the time has run out."""
        left = min(self._until - time.monotonic(), self._pace.left)
        self._watching = self._loop.call_later(left, self._look)

    def _look(self) -> None:
        if time.monotonic() >= self._until:
            self._slow = TooSlow(f"the body did not arrive within {self._timeout:g} s")
        elif not self._pace.next_period():
            self._slow = TooSlow(self._pace.text)
        if self._slow is None:
            self._watch()
        else:
            self._stop()

    def _stop(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _next(self) -> bytes:
        message = await self._receive()
        if message["type"] == "http.disconnect":
            raise Disconnected
        self._complete = not message.get("more_body", False)
        chunk: bytes = message.get("body", b"")
        self._size += len(chunk)
        self._pace.count(len(chunk))
        return chunk

    def _too_large(self) -> TooLarge:
        return TooLarge(f"the request has more than {self._limit} bytes")


# google.rpc codes: INVALID_ARGUMENT and UNAVAILABLE.
_INVALID, _UNAVAILABLE = 3, 14


class OTLPHTTPReceiver:
    """Answers ``POST /v1/traces`` and its like; hands every other path on.

    Args:
        ingest: accepts the requests.
        config: limits.
        other: the application for all other paths.
    """

    def __init__(self, ingest: Ingest, config: CollectorConfig, other: ASGIApp) -> None:
        self._ingest = ingest
        self._config = config
        self._other = other
        self._signals = {f"/v1/{signal.name}": signal for signal in ingest.signals}

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Serve one request."""
        signal = self._signals.get(scope["path"]) if scope["type"] == "http" else None
        if signal is None:
            await self._other(scope, receive, send)
        elif scope["method"] != "POST":
            await respond(send, 405, JSON, b'{"message":"use POST"}', (b"allow", b"POST"))
        else:
            await self._export(scope, receive, send, signal)

    async def _export(self, scope: Message, receive: Receive, send: Send, signal: Signal) -> None:
        headers = _Headers(scope)
        self._ingest.metrics[signal].received.labels(_TRANSPORT).inc()
        body = Body(receive, self._config)
        client = scope.get("client")
        try:
            with self._ingest.holding(sender_of(client[0]) if client else "") as memory:
                answer = await self._answer(headers, body, signal, memory)
        except asyncio.CancelledError:
            # The server stops, and waits no longer. Unacknowledged requests are sent again.
            error = RequestRefused("shutting_down", "the collector is stopping", retry_after=1.0)
            self._refused(signal, error.reason)
            await self._refuse(send, headers, 503, error)
            return
        except Disconnected:
            self._refused(signal, "disconnected")
            return
        except RequestError as error:
            self._refused(signal, error.reason)
            await self._refuse(send, headers, error.status, error)
            return
        except RequestRefused as error:
            self._refused(signal, error.reason)
            await self._refuse(send, headers, 503, error)
            return
        json = headers.json
        content = (
            MessageToJson(answer, indent=None).encode() if json else answer.SerializeToString()
        )
        await respond(send, 200, JSON if json else PROTOBUF, content)

    async def _answer(
        self, headers: _Headers, body: Body, signal: Signal, memory: MemoryReservation
    ) -> Any:
        project = self._ingest.authenticate(headers.get(b"authorization"))
        memory.belongs_to(project)
        if headers.content_type not in {PROTOBUF, JSON}:
            raise UnsupportedMediaType(
                f"content type {headers.content_type[:80]!r} is not supported; "
                f"use {PROTOBUF} or {JSON}"
            )
        self._ingest.check_room(signal)
        data = await body.read(headers.content_length, memory)
        return await self._ingest.take(
            data,
            signal,
            memory,
            transport=_TRANSPORT,
            encoding=headers.get(b"content-encoding").strip().lower(),
            json=headers.json,
            project=project,
        )

    def _refused(self, signal: Signal, reason: str) -> None:
        self._ingest.metrics[signal].refused.labels(_TRANSPORT, reason).inc()

    async def _refuse(self, send: Send, headers: _Headers, status: int, error: Exception) -> None:
        extra = []
        if isinstance(error, RequestRefused):
            extra.append((b"retry-after", str(math.ceil(error.retry_after)).encode()))
        elif status == 401:
            extra.append((b"www-authenticate", b"Bearer"))
        # The server reads on, so that a sender that is still sending sees the answer; but not if
        # nothing arrives, or more than the headers have announced.
        if headers.expects_continue or isinstance(error, TooSlow):
            extra.append((b"connection", b"close"))
        code = _UNAVAILABLE if isinstance(error, RequestRefused) else _INVALID
        report = Status(code=code, message=str(error))
        if headers.content_type == PROTOBUF:
            await respond(send, status, PROTOBUF, report.SerializeToString(), *extra)
        else:
            content = MessageToJson(report, indent=None).encode()
            await respond(send, status, JSON, content, *extra)


class _Headers:
    def __init__(self, scope: Message) -> None:
        self._headers: dict[bytes, bytes] = dict(scope["headers"])
        content_type = self.get(b"content-type").partition(";")[0].strip().lower()
        self.content_type = PROTOBUF if content_type == "application/protobuf" else content_type

    def get(self, name: bytes) -> str:
        return self._headers.get(name, b"").decode("latin-1")

    @property
    def expects_continue(self) -> bool:
        """True if the sender waits for a 100 Continue before it sends the body."""
        return self.get(b"expect").lower() == "100-continue"

    @property
    def json(self) -> bool:
        return self.content_type == JSON

    @property
    def content_length(self) -> int | None:
        text = self.get(b"content-length")
        return int(text) if text.isdecimal() else None


async def respond(
    send: Send, status: int, content_type: str, content: bytes, *extra: tuple[bytes, bytes]
) -> None:
    """Send a whole response."""
    headers = [
        (b"content-type", content_type.encode()),
        (b"content-length", str(len(content)).encode()),
        *extra,
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": content})


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
