"""Limits of an HTTP server's connections, shared by receivers, web view and ClickHouse endpoint."""

from __future__ import annotations

import http
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mast_trace_collector.config import CollectorConfig

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
