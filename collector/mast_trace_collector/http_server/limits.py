"""Limits of an HTTP server: its connections, the open files of the process, and the slowest body of a request."""

from __future__ import annotations

import asyncio
import contextlib
import http
import resource
import time
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mast_trace.exceptions import ConfigurationError

if TYPE_CHECKING:
    from mast_trace_collector.config import CollectorConfig


# A process with the embedded engine has 150 files open when idle and 220 under load, some for each
# of the engine's threads.
_OTHERS = 224
_LEAST = 256
# Above it, programs that iterate over all possible file numbers get slow.
_ENOUGH = 65_536


def raise_limit() -> int:
    """Raise the soft limit to the hard one, and return it.

    Raises:
        ConfigurationError: the hard limit is too low for any connection.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _ENOUGH if hard == resource.RLIM_INFINITY else min(hard, _ENOUGH)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        # Some systems have a lower limit for each process that they do not report.
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    limit = _limit()
    if limit < _LEAST:
        raise ConfigurationError(
            f"this process may have {limit} files open; it needs {_LEAST}, and one more for each "
            "connection. Raise the limit: `ulimit -n 4096`, LimitNOFILE= of a systemd unit, or "
            "`--ulimit nofile=4096` of a container"
        )
    return limit


def connections_that_fit(most: int, part: float) -> int:
    """Return the number of connections that a server may have open.

    Args:
        most: the number if there are enough files.
        part: this server's share of the files that are left for connections.

    Raises:
        ConfigurationError: the limit of open files is too low for any connection.
    """
    return max(1, min(most, int((raise_limit() - _OTHERS) * part)))


def _limit() -> int:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _ENOUGH if soft == resource.RLIM_INFINITY else soft


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


Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
ASGIApp = Callable[[Message, Receive, Send], Awaitable[None]]


MAX_PIPELINED = 16


@dataclass(frozen=True)
class PeerFault:
    """A fault of a peer.

    Attributes:
        status: of the answer.
        reason: one word for the counter.
        text: the answer.
    """

    status: int
    reason: str
    text: str

    def answer(self) -> bytes:
        """Return the whole answer, the last one on its connection."""
        phrase = http.HTTPStatus(self.status).phrase
        return (
            f"HTTP/1.1 {self.status} {phrase}\r\ncontent-type: text/plain; charset=utf-8\r\n"
            f"content-length: {len(self.text) + 1}\r\nconnection: close\r\n\r\n{self.text}\n"
        ).encode("ascii")


MALFORMED = PeerFault(400, "malformed", "this is no valid HTTP request")
OLD_CHUNKS = PeerFault(400, "malformed", "HTTP/1.0 has no transfer-encoding")
PIPELINED = PeerFault(
    400, "pipelined", f"more than {MAX_PIPELINED} requests wait for their answers"
)


def too_large(limits: HTTPLimits) -> PeerFault:
    """Return the fault of a request with too many bytes beside its body."""
    text = (
        f"the request has more than {limits.header_bytes} bytes beside its body, "
        f"or more than {limits.headers} headers"
    )
    return PeerFault(431, "header_too_large", text)


@dataclass(frozen=True)
class HTTPLimits:
    """The limits of a connection.

    Attributes:
        header_bytes: bytes of a request that are not its body: request line, headers, sizes and
            extensions of chunks, trailers.
        headers: headers and trailers of a request.
        header_timeout: seconds that a connection has to send a request's headers.
        keep_alive: seconds that an idle connection is kept.
        connections: open at a time.
        body_grace: seconds in which a body must make progress, again and again.
        body_rate: bytes per second that a body must come with in each of these periods.
        write_timeout: seconds in which a peer must take some of its answer.
    """

    header_bytes: int = 64 * 1024
    headers: int = 100
    header_timeout: float = 10.0
    keep_alive: int = 75
    connections: int = 1024
    body_grace: float = 10.0
    body_rate: int = 1024
    write_timeout: float = 60.0

    @classmethod
    def of(cls, config: CollectorConfig) -> HTTPLimits:
        """Return the limits from the settings."""
        return cls(
            header_bytes=config.max_header_bytes,
            headers=config.max_headers,
            header_timeout=config.header_timeout_seconds,
            keep_alive=config.keep_alive_seconds,
            connections=config.max_connections,
            body_grace=config.body_grace_seconds,
            body_rate=config.min_body_bytes_per_second,
        )
