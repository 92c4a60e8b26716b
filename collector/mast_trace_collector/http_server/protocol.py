"""One HTTP connection: uvicorn's, with limits on everything beside the body."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from mast_trace_collector.http_server.limits import (
    MALFORMED,
    MAX_PIPELINED,
    OLD_CHUNKS,
    PIPELINED,
    HTTPLimits,
    PeerFault,
    too_large,
)

if TYPE_CHECKING:
    import asyncio


# A chunk of 48 bytes or more pays for its own size line.
_BODY_PER_OVERHEAD = 8

_PIECE = 8 * 1024
_LINGER_SECONDS = 1.0
_OF_UPGRADE = {b"connection", b"upgrade", b"http2-settings"}


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


class BoundedProtocol(HttpToolsProtocol):
    """Ends connections whose headers arrive too slowly or are too large, with an answer in words.

    Attributes:
        limits: the bounds.
        idle: connections without a request, with the time since when.
        refused: called with the reason, one word, for which a connection or a request was refused.
    """

    limits = HTTPLimits()
    idle: ClassVar[dict[BoundedProtocol, float]] = {}  # each server's sub-class has its own
    refused: Callable[[str], None] = staticmethod(lambda _: None)

    _timer: asyncio.TimerHandle | None = None
    _due: float | None = None
    _writing: asyncio.TimerHandle | None = None
    _unwritten = 0
    _in_head = False
    _in_body = False
    _ended = False
    _body_left = 0
    _method = b""
    _fault: PeerFault | None = None
    _owed: PeerFault | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the timer for the headers of a first request."""
        super().connection_made(transport)
        self._overhead = Overhead(self.limits)
        self.idle[self] = self.loop.time()
        self._await_headers()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self.idle.pop(self, None)
        if self._timer is not None:
            self._timer.cancel()
        self.resume_writing()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take arrived bytes, in pieces small enough to count those beside the body."""
        if self._ended:
            return
        self._unset_keepalive_if_required()
        if not self._in_body and self._due is None:
            self._await_headers()
        rest = memoryview(data)
        while rest and not self._ended:
            # A body of known length is passed on as it came.
            size = max(self._body_left, _PIECE)
            piece, rest = rest[:size], rest[size:]
            self._feed(piece)

    def _feed(self, piece: memoryview) -> None:
        try:
            self.parser.feed_data(piece)
        except httptools.HttpParserUpgrade as upgrade:
            self._count(offset := int(upgrade.args[0]))
            self._go_on_without_upgrade()
            if not self._ended and offset < len(piece):
                self._feed(piece[offset:])
            return
        except httptools.HttpParserError:
            self._end(self._fault or MALFORMED)
            return
        self._count(len(piece))

    def _count(self, size: int) -> None:
        self._overhead.piece(size)
        if (self._in_head or self._in_body) and self._overhead.exceeded and not self._ended:
            self._end(too_large(self.limits))

    def _go_on_without_upgrade(self) -> None:
        """Serve a request as if it did not offer another protocol, which HTTP allows.

        The parser would treat the rest of the connection, the body included, as that protocol's. A
        second parser reads the same headers without the offer.
        """
        self.parser = httptools.HttpRequestParser(self)
        kept = b"close" if any(map(_closes, self.headers)) else b"keep-alive"
        lines = [b"%s %s HTTP/1.1" % (self._method, self.url), b"connection: " + kept]
        lines += [b"%s: %s" % pair for pair in self.headers if pair[0] not in _OF_UPGRADE]
        try:
            self.parser.feed_data(b"\r\n".join([*lines, b"", b""]))
        except httptools.HttpParserError:
            self._end(self._fault or MALFORMED)

    # Callbacks of the parser. An exception in them ends its work.

    def on_message_begin(self) -> None:
        """Begin to count a request."""
        self._in_head = True
        self._overhead.begin()
        if self._due is None:
            self._await_headers()
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        """Count the target of a request."""
        self._overhead.target(url)
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Count a header, or a trailer, which is dropped."""
        self._overhead.header(name, value)
        if self._overhead.exceeded:
            raise self._failed(too_large(self.limits))
        if self._in_head:  # the field follows the body: it is no header
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Start a request whose headers are within the bounds."""
        self._overhead.headers_end()
        if len(self.pipeline) >= MAX_PIPELINED:
            raise self._failed(PIPELINED)
        if self.parser.should_upgrade():
            self._method = self.parser.get_method()
            if self._method == b"CONNECT":
                raise self._failed(MALFORMED)
            return
        headers = dict(self.headers)
        if b"transfer-encoding" in headers and self.parser.get_http_version() != "1.1":
            raise self._failed(OLD_CHUNKS)
        super().on_headers_complete()
        self._headers_are_in()
        self.idle.pop(self, None)
        self._in_head, self._in_body = False, True
        self._body_left = int(headers.get(b"content-length", 0))

    def on_body(self, body: bytes) -> None:
        """Count a part of the body."""
        self._overhead.body(len(body))
        self._body_left = max(0, self._body_left - len(body))
        super().on_body(body)

    def on_message_complete(self) -> None:
        """End a request."""
        if self._in_head:  # the request is parsed once more, without its offer to upgrade
            return
        self._in_body = False
        self._body_left = 0
        self._headers_are_in()
        super().on_message_complete()
        if self.cycle.response_complete:
            self.timeout_keep_alive_task = self.loop.call_later(
                self.timeout_keep_alive, self.timeout_keep_alive_handler
            )

    def _failed(self, fault: PeerFault) -> ValueError:
        self._fault = fault
        return ValueError(fault.text)

    # Called at the end of a request, and of the connection.

    def on_response_complete(self) -> None:
        """Wait for the next request, unless the connection is to be closed."""
        last = not self.pipeline
        super().on_response_complete()
        if not last or self.transport.is_closing():
            return
        if not self._ended:
            self.idle[self] = self.loop.time()
            if self._in_body:  # the rest of the body is read and dropped, for a limited time
                self._await_headers()
        elif self._owed is not None:
            self._answer(self._owed)
        else:
            self.transport.close()

    def give_way(self) -> None:
        """Close the connection, which has no request, to admit a new one."""
        if not self._ended:
            self._ended = True
            self.refused("evicted")
        self.transport.close()

    def _end(self, fault: PeerFault) -> None:
        """Read no more; answer the requests in their order, and close."""
        self._ended = True
        self._headers_are_in()
        self.refused(fault.reason)
        cycle = self.cycle
        if self._in_body and not self._in_head:
            if self.pipeline and self.pipeline[0][0] is cycle:
                self.pipeline.popleft()
                self._owed = fault
            elif cycle.response_complete:
                self.transport.close()
            elif not cycle.response_started:
                self._answer(fault)
                cycle.disconnected = True
            cycle.message_event.set()
        elif cycle is None or cycle.response_complete:
            self._answer(fault)
        else:
            self._owed = fault

    def _answer(self, fault: PeerFault) -> None:
        self.transport.write(fault.answer())
        if self.transport.can_write_eof():
            # Further bytes of the peer are read and dropped for a moment: if they were left unread,
            # the kernel would reset the connection, and with it the answer.
            self.transport.write_eof()
            self.idle[self] = self.loop.time()
            self.loop.call_later(_LINGER_SECONDS, self.transport.close)
        else:
            self.transport.close()

    def _await_headers(self) -> None:
        self._due = self.loop.time() + self.limits.header_timeout
        # One timer for all requests of a connection: it determines itself which limit applies.
        if self._timer is None:
            self._timer = self.loop.call_at(self._due, self._look_for_headers)

    def _headers_are_in(self) -> None:
        self._due = None

    def _look_for_headers(self) -> None:
        self._timer = None
        if self._due is None:
            return
        if self.loop.time() < self._due:
            self._timer = self.loop.call_at(self._due, self._look_for_headers)
            return
        self._ended = True
        self.refused("header_timeout")
        self.transport.close()

    # Called for a peer that does not read its answer.

    def pause_writing(self) -> None:
        """Limit the time in which the peer has to read some of its answer."""
        super().pause_writing()
        self._unwritten = self.transport.get_write_buffer_size()
        self._writing = self.loop.call_later(self.limits.write_timeout, self._is_written)

    def resume_writing(self) -> None:
        """Go on; the peer has read enough."""
        if self._writing is not None:
            self._writing.cancel()
            self._writing = None
        super().resume_writing()

    def _is_written(self) -> None:
        left = self.transport.get_write_buffer_size()
        if left >= self._unwritten:
            self.refused("slow_reader")
            self.transport.abort()
            return
        self._unwritten = left
        self._writing = self.loop.call_later(self.limits.write_timeout, self._is_written)


def _closes(header: tuple[bytes, bytes]) -> bool:
    return header[0] == b"connection" and b"close" in header[1].lower()
