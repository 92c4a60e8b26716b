"""The body of a request over HTTP: read within limits of size, time, rate and memory."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from mast_trace_collector.http_server.pace import Pace
from mast_trace_collector.otlp.errors import TooLarge, TooSlow

if TYPE_CHECKING:
    from mast_trace_collector.config import CollectorConfig
    from mast_trace_collector.http_server.asgi import Receive
    from mast_trace_collector.receivers.memory import MemoryReservation


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
