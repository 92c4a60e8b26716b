"""The minimum rate of a request's body: a slower one is refused."""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from mast_trace_collector.http_server.asgi import Message, Receive, Send
    from mast_trace_collector.http_server.limits import HTTPLimits


class Pace:
    """Periods of a body, in each of which a number of bytes must arrive.

    Args:
        period: seconds.
        rate: bytes per second.
    """

    def __init__(self, period: float, rate: int) -> None:
        self._period = period
        self._least = rate * period
        self._ends = time.monotonic() + period
        self._came = 0

    def count(self, size: int) -> None:
        """Count bytes that have arrived."""
        self._came += size

    @property
    def left(self) -> float:
        """Seconds until the period ends."""
        return max(0.0, self._ends - time.monotonic())

    def next_period(self) -> bool:
        """Begin another period if this one is over; return whether enough bytes arrived in it."""
        now = time.monotonic()
        if now < self._ends:
            return True
        enough = self._came >= self._least
        self._ends, self._came = now + self._period, 0
        return enough

    @property
    def text(self) -> str:
        """The required rate, in words."""
        return f"the body comes with less than {self._least:g} bytes in {self._period:g} s"


class PacedBodies:
    """ASGI middleware that answers 408 when a body arrives too slowly.

    Args:
        app: the application; to it such a sender has disconnected.
        limits: the least speed.
        refused: called for each.
    """

    def __init__(self, app: Any, limits: HTTPLimits, refused: Callable[[str], None]) -> None:
        self._app = app
        self._limits = limits
        self._refused = refused

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Serve one request."""
        body = _PacedBody(Pace(self._limits.body_grace, self._limits.body_rate), receive, send)
        try:
            await self._app(scope, body.receive, body.send)
        except Exception:
            # An application may report a disconnected sender as an error of its own.
            if not body.too_slow:
                raise
        finally:
            if body.too_slow:
                self._refused("too_slow")


class _PacedBody:
    def __init__(self, pace: Pace, receive: Receive, send: Send) -> None:
        self._pace = pace
        self._receive = receive
        self._send = send
        self._complete = False
        self._started = False
        self.too_slow = False

    async def receive(self) -> Message:
        if self._complete:
            return await self._receive()
        while not self.too_slow:
            with contextlib.suppress(asyncio.TimeoutError):
                message = await asyncio.wait_for(self._receive(), self._pace.left + 0.001)
                self._complete = not message.get("more_body", False)
                self._pace.count(len(message.get("body", b"")))
                return message
            if not self._pace.next_period():
                await self._refuse()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        if not self.too_slow:
            self._started = True
            await self._send(message)

    async def _refuse(self) -> None:
        self.too_slow = True
        if self._started:
            return
        text = f"{self._pace.text}\n".encode()
        headers = [
            (b"content-type", b"text/plain; charset=utf-8"),
            (b"content-length", str(len(text)).encode()),
            (b"connection", b"close"),
        ]
        await self._send({"type": "http.response.start", "status": 408, "headers": headers})
        await self._send({"type": "http.response.body", "body": text})
