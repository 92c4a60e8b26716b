"""One HTTP connection: uvicorn's, with bounds on everything that is not a body."""

from __future__ import annotations

import http
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from mast_trace_collector.receivers.http_limits import HTTPLimits

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

_PIECE = 8 * 1024
# A chunk of 48 bytes, or larger, pays for its own size line.
_BODY_PER_OVERHEAD = 8
_MAX_PIPELINED = 16
_LINGER_SECONDS = 1.0


_OF_UPGRADE = {b"connection", b"upgrade", b"http2-settings"}


@dataclass(frozen=True)
class Fault:
    """A peer's mistake that ends its connection.

    Attributes:
        status: of the answer.
        reason: one word for the counter.
        text: the answer.
    """

    status: int
    reason: str
    text: str


_MALFORMED = Fault(400, "malformed", "this is no valid HTTP request")
_OLD_CHUNKS = Fault(400, "malformed", "HTTP/1.0 has no transfer-encoding")
_PIPELINED = Fault(400, "pipelined", f"more than {_MAX_PIPELINED} requests wait for their answers")


class BoundedProtocol(HttpToolsProtocol):
    """Ends connections whose headers come too slowly or are too many, with an answer in words.

    The parser keeps a header until it is whole and says nothing of the extensions of chunks, so the
    bytes are counted where they arrive: what was received less what was handed on as a body.
    """

    limits = HTTPLimits()
    # Connections without a request, and since when; each server's sub-class has its own.
    idle: ClassVar[dict[BoundedProtocol, float]] = {}
    refused: Callable[[str], None] = staticmethod(lambda _: None)

    _timer: asyncio.TimerHandle | None = None
    _due: float | None = None
    _writing: asyncio.TimerHandle | None = None
    _unwritten = 0
    _in_head = False
    _in_body = False
    _begun = False
    _ended = False
    _head = 0
    _overhead = 0
    _named = 0
    _count = 0
    _piece_body = 0
    _body_left = 0
    _method = b""
    _fault: Fault | None = None
    _owed: Fault | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Give the connection its time for the headers of a first request."""
        super().connection_made(transport)
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
        """Take what has arrived, in pieces small enough to count what is not body."""
        if self._ended:
            return
        self._unset_keepalive_if_required()
        if not self._in_body and self._due is None:
            self._await_headers()
        rest = memoryview(data)
        while rest and not self._ended:
            # A body of known length is handed over as it came.
            size = max(self._body_left, _PIECE)
            piece, rest = rest[:size], rest[size:]
            self._feed(piece)

    def _feed(self, piece: memoryview) -> None:
        self._begun = False
        self._piece_body = 0
        try:
            self.parser.feed_data(piece)
        except httptools.HttpParserUpgrade as upgrade:
            self._count_overhead(offset := int(upgrade.args[0]))
            self._go_on_without_upgrade()
            if not self._ended and offset < len(piece):
                self._feed(piece[offset:])
            return
        except httptools.HttpParserError:
            self._end(self._fault or _MALFORMED)
            return
        self._count_overhead(len(piece))

    def _count_overhead(self, size: int) -> None:
        """Count what was not body; the body pays for the sizes of its chunks."""
        if size == self._piece_body:
            return
        if self._begun:
            self._overhead = 0
        self._overhead += size - self._piece_body
        self._overhead = max(
            min(self._head, self._overhead),
            self._overhead - self._piece_body // _BODY_PER_OVERHEAD,
        )
        if self._overhead > self.limits.header_bytes and (self._in_head or self._in_body):
            self._end(self._too_large())

    def _go_on_without_upgrade(self) -> None:
        """Serve a request as if it did not offer another protocol, which HTTP allows.

        The parser takes the rest of the connection for that protocol's, and so the body. Another one
        reads the same headers without the offer.
        """
        self.parser = httptools.HttpRequestParser(self)
        kept = b"close" if any(map(_closes, self.headers)) else b"keep-alive"
        lines = [b"%s %s HTTP/1.1" % (self._method, self.url), b"connection: " + kept]
        lines += [b"%s: %s" % pair for pair in self.headers if pair[0] not in _OF_UPGRADE]
        try:
            self.parser.feed_data(b"\r\n".join([*lines, b"", b""]))
        except httptools.HttpParserError:
            self._end(self._fault or _MALFORMED)

    def _too_large(self) -> Fault:
        limits = self.limits
        text = (
            f"the request has more than {limits.header_bytes} bytes beside its body, "
            f"or more than {limits.headers} headers"
        )
        return Fault(431, "header_too_large", text)

    # What the parser calls. Whatever is raised there ends its work.

    def on_message_begin(self) -> None:
        """Begin to count a request."""
        self._in_head = self._begun = True
        self._named = self._count = self._head = 0
        if self._due is None:
            self._await_headers()
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        """Count the target of a request."""
        self._named += len(url)
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Count a header, or a trailer, which is dropped."""
        self._count += 1
        self._named += len(name) + len(value) + 4
        if self._count > self.limits.headers or self._named > self.limits.header_bytes:
            raise self._failed(self._too_large())
        if self._in_head:  # what comes after the body is no header
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Start a request whose headers are within the bounds."""
        self._head = self._named
        if len(self.pipeline) >= _MAX_PIPELINED:
            raise self._failed(_PIPELINED)
        if self.parser.should_upgrade():
            self._method = self.parser.get_method()
            if self._method == b"CONNECT":
                raise self._failed(_MALFORMED)
            return
        headers = dict(self.headers)
        if b"transfer-encoding" in headers and self.parser.get_http_version() != "1.1":
            raise self._failed(_OLD_CHUNKS)
        super().on_headers_complete()
        self._headers_are_in()
        self.idle.pop(self, None)
        self._in_head, self._in_body = False, True
        self._body_left = int(headers.get(b"content-length", 0))

    def on_body(self, body: bytes) -> None:
        """Count a part of the body as such."""
        self._piece_body += len(body)
        self._body_left = max(0, self._body_left - len(body))
        super().on_body(body)

    def on_message_complete(self) -> None:
        """End a request."""
        if self._in_head:  # the request is read once more, without its offer to upgrade
            return
        self._in_body = False
        self._body_left = 0
        self._headers_are_in()
        super().on_message_complete()
        if self.cycle.response_complete:
            self.timeout_keep_alive_task = self.loop.call_later(
                self.timeout_keep_alive, self.timeout_keep_alive_handler
            )

    def _failed(self, fault: Fault) -> ValueError:
        self._fault = fault
        return ValueError(fault.text)

    # The end of a request, and of the connection.

    def on_response_complete(self) -> None:
        """Wait for the next request, unless the connection is to be closed."""
        last = not self.pipeline
        super().on_response_complete()
        if not last or self.transport.is_closing():
            return
        if not self._ended:
            self.idle[self] = self.loop.time()
            if self._in_body:  # the rest of it is read and dropped, but not for ever
                self._await_headers()
        elif self._owed is not None:
            self._answer(self._owed)
        else:
            self.transport.close()

    def give_way(self) -> None:
        """Close the connection, which has nothing under way, for the sake of a new one."""
        if not self._ended:
            self._ended = True
            self.refused("evicted")
        self.transport.close()

    def _end(self, fault: Fault) -> None:
        """Take nothing more; answer in the order of the requests, and close."""
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

    def _answer(self, fault: Fault) -> None:
        phrase = http.HTTPStatus(fault.status).phrase
        text = fault.text + "\n"
        self.transport.write(
            f"HTTP/1.1 {fault.status} {phrase}\r\ncontent-type: text/plain; charset=utf-8\r\n"
            f"content-length: {len(text)}\r\nconnection: close\r\n\r\n{text}".encode("ascii")
        )
        if self.transport.can_write_eof():
            # What the peer still sends is read and dropped for a moment: if bytes were left unread,
            # the kernel would reset the connection, and with it the answer.
            self.transport.write_eof()
            self.idle[self] = self.loop.time()
            self.loop.call_later(_LINGER_SECONDS, self.transport.close)
        else:
            self.transport.close()

    def _await_headers(self) -> None:
        self._due = self.loop.time() + self.limits.header_timeout
        # One timer for all requests of a connection: it finds out by itself what it is about.
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

    # A peer that does not read its answer.

    def pause_writing(self) -> None:
        """Give the peer a time in which it has to take something."""
        super().pause_writing()
        self._unwritten = self.transport.get_write_buffer_size()
        self._writing = self.loop.call_later(self.limits.write_timeout, self._is_written)

    def resume_writing(self) -> None:
        """Go on; the peer has taken enough."""
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
