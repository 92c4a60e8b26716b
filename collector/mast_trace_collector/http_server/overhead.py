"""Counts the bytes of an HTTP request beside its body."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mast_trace_collector.http_server.limits import HTTPLimits

# A chunk of 48 bytes or more pays for its own size line.
_BODY_PER_OVERHEAD = 8


class Overhead:
    """Bytes and headers of one request after the other, beside their bodies.

    The parser keeps a header until it is whole and does not report the extensions of chunks, so
    bytes are counted where they arrive, in small pieces: those of a piece less those that the
    parser has reported as a body. Reported headers are counted as well, because several requests
    may be in one piece.

    Args:
        limits: bounds.
    """

    def __init__(self, limits: HTTPLimits) -> None:
        self._limits = limits
        self._head = 0
        self._total = 0
        self._named = 0
        self._headers = 0
        self._body = 0

    @property
    def exceeded(self) -> bool:
        """True if a bound is exceeded."""
        limits = self._limits
        return (
            self._total > limits.header_bytes
            or self._named > limits.header_bytes
            or self._headers > limits.headers
        )

    def begin(self) -> None:
        """Begin with another request."""
        self._total = self._named = self._headers = self._head = 0

    def target(self, target: bytes) -> None:
        """Count a part of the request line."""
        self._named += len(target)

    def header(self, name: bytes, value: bytes) -> None:
        """Count a header or a trailer."""
        self._headers += 1
        self._named += len(name) + len(value) + 4

    def headers_end(self) -> None:
        """Keep the headers' count, which the body does not reduce."""
        self._head = self._named

    def body(self, size: int) -> None:
        """Count bytes as body."""
        self._body += size

    def piece(self, size: int) -> None:
        """Count all bytes of a piece, once the parser has processed it."""
        body, self._body = self._body, 0
        if size == body:
            return
        # In a piece in which a request begins, the bytes before it count for it, too.
        total = self._total + size - body
        self._total = max(min(self._head, total), total - body // _BODY_PER_OVERHEAD)
