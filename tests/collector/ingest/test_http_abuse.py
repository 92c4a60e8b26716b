"""Senders that are slow, go away, or write no HTTP: others are served meanwhile."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

import pytest
from ingest_support import body_of, post, until

if TYPE_CHECKING:
    from ingest_support import Launch

    from mast_trace_collector.collector import Collector
    from mast_trace_collector.storage import Store


class TestSlowSenders:
    """A connection that only holds on is closed."""

    async def closes(self, collector: Collector, sent: bytes) -> bytes:
        """Return the bytes that come back until the server closes the connection."""
        host, _, port = collector.http_address.removeprefix("http://").rpartition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        with contextlib.suppress(ConnectionError):
            writer.write(sent)
            await writer.drain()
        try:
            return await asyncio.wait_for(reader.read(), 20)
        except ConnectionError:
            return b""
        finally:
            writer.close()

    @pytest.mark.parametrize("sent", [b"", b"POST /v1/traces HTTP/1.1\r\nhost: x\r\n"])
    async def test_headers_that_never_end(self, launch: Launch, sent: bytes) -> None:
        collector = await launch(header_timeout_seconds=0.2)
        assert await self.closes(collector, sent) == b""

    async def test_headers_of_the_second_request(self, launch: Launch) -> None:
        collector = await launch(header_timeout_seconds=0.2)
        sent = b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\nGET /healthz HTTP/1.1\r\nhost"
        assert (await self.closes(collector, sent)).count(b"200 OK") == 1

    async def test_a_body_that_never_ends(self, launch: Launch) -> None:
        collector = await launch(request_timeout_seconds=0.2)
        sent = (
            b"POST /v1/traces HTTP/1.1\r\nhost: x\r\ncontent-type: application/x-protobuf\r\n"
            b"content-length: 100\r\n\r\nabc"
        )
        assert (await self.closes(collector, sent)).startswith(b"HTTP/1.1 408")
        assert collector._ingest.held == 0

    async def test_a_sender_that_goes_away(self, collector: Collector) -> None:
        host, _, port = collector.http_address.removeprefix("http://").rpartition(":")
        _, writer = await asyncio.open_connection(host, int(port))
        writer.write(
            b"POST /v1/traces HTTP/1.1\r\nhost: x\r\ncontent-type: application/x-protobuf\r\n"
            b"content-length: 100\r\n\r\nabc"
        )
        await writer.drain()
        writer.close()
        await until(
            lambda: collector.metrics.value(
                "refused_requests_total", transport="http", reason="disconnected"
            )
        )
        assert (await post(collector, body_of("x"))).status_code == 200


TYPED = b"content-type: application/x-protobuf\r\n"
ABUSE = {
    "a path in another spelling": b"POST //v1/traces HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n",
    "a path that climbs": b"POST /v1/../v1/traces HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n",
    "an encoded path": b"GET /%76%31/%00%ff HTTP/1.1\r\nhost: x\r\n\r\n",
    "no path": b"GET  HTTP/1.1\r\nhost: x\r\n\r\n",
    "a negative length": b"POST /v1/traces HTTP/1.1\r\ncontent-length: -1\r\n\r\n",
    "a length beyond all numbers": b"POST /v1/traces HTTP/1.1\r\n"
    + TYPED
    + b"content-length: "
    + b"9" * 40
    + b"\r\n\r\n",
    "a header of no name": b"GET /healthz HTTP/1.1\r\n: a\r\n\r\n",
    "an odd encoding": b"POST /v1/traces HTTP/1.1\r\n"
    + TYPED
    + b"content-encoding: gzip, gzip, \xff\r\ncontent-length: 1\r\n\r\nx",
    "an upgrade": b"GET /v1/traces HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\n"
    b"sec-websocket-key: eHh4eHh4eHh4eHh4eHh4eA==\r\nsec-websocket-version: 13\r\n\r\n",
}

# By their statuses; all others are plainly malformed.
ANSWERS = {
    "a path in another spelling": 404,
    "a path that climbs": 404,
    "an encoded path": 404,
    "an odd encoding": 415,
    "an upgrade": 405,
}


@pytest.mark.parametrize("kind", ABUSE)
async def test_abused_headers_harm_nobody(launch: Launch, store: Store, kind: str) -> None:
    """The sender is answered with its mistake or cut off; others are served, nothing is stored."""
    collector = await launch(header_timeout_seconds=0.3, request_timeout_seconds=0.3)
    host, port = collector.http_address.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    with contextlib.suppress(ConnectionError):
        writer.write(ABUSE[kind])
        await writer.drain()
    answer = b""
    with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
        answer = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 30)
        # Only now: a sender that ends too early gets no answer at all.
        writer.write_eof()
        answer += await asyncio.wait_for(reader.read(), 30)
    writer.close()
    protocol, status, _ = answer.split(b" ", 2)
    assert (protocol, int(status)) == (b"HTTP/1.1", ANSWERS.get(kind, 400)), answer[:200]
    assert answer.count(b"HTTP/1.1 ") <= 1, answer
    assert b"Traceback" not in answer
    assert (await post(collector, body_of("after"))).status_code == 200
    rows = await until(lambda: store.query("SELECT SpanName FROM otel_traces"))
    assert rows == [{"SpanName": "after"}]
