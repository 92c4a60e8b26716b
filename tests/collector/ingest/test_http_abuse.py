"""Senders that are slow, go away, or write no HTTP: others are served meanwhile."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

import pytest
from ingest_support import body_of, connect, post, refusals, until

if TYPE_CHECKING:
    from ingest_support import Launch

    from mast_trace_collector.collector import Collector
    from mast_trace_collector.storage import Store


ENDLESS = (
    b"POST /v1/traces HTTP/1.1\r\nhost: x\r\ncontent-type: application/x-protobuf\r\n"
    b"content-length: 100\r\n\r\nabc"
)
"""A body that does not come to its end."""


class TestSlowSenders:
    """A connection that only holds on is closed."""

    async def closes(self, collector: Collector, sent: bytes) -> bytes:
        """Return the bytes that come back until the server closes the connection."""
        reader, writer = await connect(collector)
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

    @pytest.mark.parametrize("setting", ["request_timeout_seconds", "body_grace_seconds"])
    async def test_a_body_that_never_ends(self, launch: Launch, setting: str) -> None:
        collector = await launch(**{setting: 0.2})
        assert (await self.closes(collector, ENDLESS)).startswith(b"HTTP/1.1 408")
        assert refusals(collector, "http", "too_slow") == 1
        assert collector._ingest.held == 0

    async def test_a_sender_that_goes_away(self, collector: Collector) -> None:
        _, writer = await connect(collector)
        writer.write(ENDLESS)
        await writer.drain()
        writer.close()
        await until(lambda: refusals(collector, "http", "disconnected"))
        assert (await post(collector, body_of("x"))).status_code == 200


TYPED = b"content-type: application/x-protobuf\r\n"
ABUSE = {
    b"POST //v1/traces HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n": 404,
    b"POST /v1/../v1/traces HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n": 404,
    b"GET /%76%31/%00%ff HTTP/1.1\r\nhost: x\r\n\r\n": 404,
    b"POST /v1/traces HTTP/1.1\r\n"
    + TYPED
    + b"content-encoding: gzip, gzip, \xff\r\ncontent-length: 1\r\n\r\nx": 415,
    b"GET /v1/traces HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\n"
    b"sec-websocket-key: eHh4eHh4eHh4eHh4eHh4eA==\r\nsec-websocket-version: 13\r\n\r\n": 405,
}
"""Requests with their statuses; what is plainly malformed is tried in test_http_bounds.py."""


@pytest.mark.parametrize(("sent", "expected"), ABUSE.items())
async def test_abused_headers_harm_nobody(
    launch: Launch, store: Store, sent: bytes, expected: int
) -> None:
    collector = await launch(header_timeout_seconds=0.3, request_timeout_seconds=0.3)
    reader, writer = await connect(collector)
    with contextlib.suppress(ConnectionError):
        writer.write(sent)
        await writer.drain()
    answer = b""
    with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
        answer = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 30)
        # Only now: a sender that ends too early gets no answer at all.
        writer.write_eof()
        answer += await asyncio.wait_for(reader.read(), 30)
    writer.close()
    protocol, status, _ = answer.split(b" ", 2)
    assert (protocol, int(status)) == (b"HTTP/1.1", expected), answer[:200]
    assert answer.count(b"HTTP/1.1 ") <= 1, answer
    assert b"Traceback" not in answer
    assert (await post(collector, body_of("after"))).status_code == 200
    rows = await until(lambda: store.query("SELECT SpanName FROM otel_traces"))
    assert rows == [{"SpanName": "after"}]
