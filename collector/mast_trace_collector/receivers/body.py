"""The body of a request over HTTP: read within a size, a time, a speed and the memory there is."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from mast_trace_collector.receivers.pace import Pace
from mast_trace_collector.receivers.request_error import TooLarge, TooSlow

if TYPE_CHECKING:
    from mast_trace_collector.config import CollectorConfig
    from mast_trace_collector.receivers.memory import Memory
    from mast_trace_collector.receivers.otlp_http import Receive


class Disconnected(Exception):
    """The sender is gone."""


class Body:
    """Reads one body.

    Args:
        receive: the ASGI channel that it comes from.
        config: limits.
    """

    def __init__(self, receive: Receive, config: CollectorConfig) -> None:
        self._receive = receive
        self._limit = config.max_body_bytes
        self._timeout = config.request_timeout_seconds
        self._until = time.monotonic() + self._timeout
        self._pace = Pace(config.body_grace_seconds, config.min_body_bytes_per_second)
        self._chunks: list[bytes] = []
        self._size = 0
        self._complete = False

    async def read(self, declared: int | None, memory: Memory) -> bytes:
        """Read it to its end; memory is held as it arrives.

        Raises:
            RequestError: it is too large, or comes too slowly.
            Refused: there is no room for it.
            Disconnected: the sender is gone.
        """
        if declared is not None and declared > self._limit:
            raise self._too_large()
        try:
            await self._to_the_end(memory)
            return self._chunks[0] if len(self._chunks) == 1 else b"".join(self._chunks)
        finally:
            memory.arrived()
            self._chunks = []

    async def _arrive(self, memory: Memory) -> None:
        while not self._complete:
            chunk = await self._next()
            if self._size > self._limit:
                raise self._too_large()
            memory.grow(len(chunk))
            self._chunks.append(chunk)

    async def _to_the_end(self, memory: Memory) -> None:
        """Take one chunk after the other, and look at their speed once in a period."""
        while not self._complete:
            arriving = asyncio.ensure_future(self._arrive(memory))
            memory.arriving(arriving.cancel)
            left = min(self._until - time.monotonic(), self._pace.left)
            try:
                await asyncio.wait({arriving}, timeout=max(0.0, left))
            finally:
                arriving.cancel()
            if memory.broken_off is not None:
                raise memory.broken_off
            if arriving.done() and not arriving.cancelled():
                arriving.result()
            elif time.monotonic() >= self._until:
                raise TooSlow(f"the body did not arrive within {self._timeout:g} s")
            elif not self._pace.next_period():
                raise TooSlow(self._pace.text)

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
