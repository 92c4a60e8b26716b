"""OTLP over HTTP, as an ASGI application."""

from __future__ import annotations

import asyncio
import logging
import math
from typing import TYPE_CHECKING, Any

from google.protobuf.json_format import MessageToJson
from google.rpc.status_pb2 import Status

from mast_trace_collector.receivers.request_error import (
    RequestError,
    TooLarge,
    TooSlow,
    UnsupportedMediaType,
)
from mast_trace_collector.spool import Refused

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, MutableMapping

    from mast_trace_collector.config import CollectorConfig
    from mast_trace_collector.receivers.intake import Intake, Memory
    from mast_trace_collector.receivers.signals import Signal

    Message = MutableMapping[str, Any]
    Receive = Callable[[], Awaitable[Message]]
    Send = Callable[[Message], Awaitable[None]]
    ASGIApp = Callable[[Message, Receive, Send], Awaitable[None]]

logger = logging.getLogger(__name__)

PROTOBUF = "application/x-protobuf"
JSON = "application/json"
_TRANSPORT = "http"
# google.rpc codes: INVALID_ARGUMENT and UNAVAILABLE.
_INVALID, _UNAVAILABLE = 3, 14


class OTLPHTTPReceiver:
    """Answers ``POST /v1/traces`` and its like; hands every other path on.

    Args:
        intake: takes the requests.
        config: limits.
        other: the application for all other paths.
    """

    def __init__(self, intake: Intake, config: CollectorConfig, other: ASGIApp) -> None:
        self._intake = intake
        self._config = config
        self._other = other
        self._signals = {f"/v1/{signal.name}": signal for signal in intake.signals}

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
        self._intake.metrics[signal].received.labels(_TRANSPORT).inc()
        body = _Body(receive, self._config.request_timeout_seconds)
        try:
            with self._intake.holding() as memory:
                answer = await self._answer(headers, body, signal, memory)
        except _Disconnected:
            self._refused(signal, "disconnected")
            return
        except RequestError as error:
            self._refused(signal, error.reason)
            await self._refuse(send, headers, body, error.status, error)
            return
        except Refused as error:
            self._refused(signal, error.reason)
            await self._refuse(send, headers, body, 503, error)
            return
        json = headers.json
        content = (
            MessageToJson(answer, indent=None).encode() if json else answer.SerializeToString()
        )
        await respond(send, 200, JSON if json else PROTOBUF, content)

    async def _answer(self, headers: _Headers, body: _Body, signal: Signal, memory: Memory) -> Any:
        project = self._intake.authenticate(headers.get(b"authorization"))
        if headers.content_type not in {PROTOBUF, JSON}:
            raise UnsupportedMediaType(
                f"content type {headers.content_type[:80]!r} is not supported; "
                f"use {PROTOBUF} or {JSON}"
            )
        self._intake.check_room(signal)
        data = await body.read(self._config.max_body_bytes, headers.content_length, memory)
        return await self._intake.take(
            data,
            signal,
            memory,
            transport=_TRANSPORT,
            encoding=headers.get(b"content-encoding").strip().lower(),
            json=headers.json,
            project=project,
        )

    def _refused(self, signal: Signal, reason: str) -> None:
        self._intake.metrics[signal].refused.labels(_TRANSPORT, reason).inc()

    async def _refuse(
        self, send: Send, headers: _Headers, body: _Body, status: int, error: Exception
    ) -> None:
        extra = []
        if isinstance(error, Refused):
            extra.append((b"retry-after", str(math.ceil(error.retry_after)).encode()))
        elif status == 401:
            extra.append((b"www-authenticate", b"Bearer"))
        # A sender that is still sending would see a broken connection instead of the answer.
        if not await body.discard(self._config.max_body_bytes):
            extra.append((b"connection", b"close"))
        code = _UNAVAILABLE if isinstance(error, Refused) else _INVALID
        report = Status(code=code, message=str(error))
        if headers.content_type == PROTOBUF:
            await respond(send, status, PROTOBUF, report.SerializeToString(), *extra)
        else:
            content = MessageToJson(report, indent=None).encode()
            await respond(send, status, JSON, content, *extra)


class _Disconnected(Exception):
    """The sender is gone."""


class _Headers:
    def __init__(self, scope: Message) -> None:
        self._headers: dict[bytes, bytes] = dict(scope["headers"])
        content_type = self.get(b"content-type").partition(";")[0].strip().lower()
        self.content_type = PROTOBUF if content_type == "application/protobuf" else content_type

    def get(self, name: bytes) -> str:
        return self._headers.get(name, b"").decode("latin-1")

    @property
    def json(self) -> bool:
        return self.content_type == JSON

    @property
    def content_length(self) -> int | None:
        text = self.get(b"content-length")
        return int(text) if text.isdecimal() else None


class _Body:
    def __init__(self, receive: Receive, timeout: float) -> None:
        self._receive = receive
        self._timeout = timeout
        self._complete = False

    async def read(self, limit: int, length: int | None, memory: Memory) -> bytes:
        """Read the whole body, within a size and a time."""
        if length is not None:
            if length > limit:
                raise TooLarge(f"the request has more than {limit} bytes")
            memory.grow(length)
        chunks: list[bytes] = []

        async def collect() -> None:
            size = 0
            while not self._complete:
                chunk = await self._next()
                size += len(chunk)
                if size > limit:
                    raise TooLarge(f"the request has more than {limit} bytes")
                if length is None:
                    memory.grow(len(chunk))
                chunks.append(chunk)

        try:
            await asyncio.wait_for(collect(), self._timeout)
        except asyncio.TimeoutError:
            raise TooSlow(f"the body did not arrive within {self._timeout:g} s") from None
        return chunks[0] if len(chunks) == 1 else b"".join(chunks)

    async def discard(self, limit: int) -> bool:
        """Read what is left and throw it away; says whether it came to its end."""

        async def drop() -> None:
            size = 0
            while not self._complete and size <= limit:
                size += len(await self._next())

        try:
            await asyncio.wait_for(drop(), self._timeout)
        except (asyncio.TimeoutError, _Disconnected):
            return False
        return self._complete

    async def _next(self) -> bytes:
        message = await self._receive()
        if message["type"] == "http.disconnect":
            raise _Disconnected
        self._complete = not message.get("more_body", False)
        chunk: bytes = message.get("body", b"")
        return chunk


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
