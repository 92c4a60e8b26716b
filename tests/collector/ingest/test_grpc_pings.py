"""Pings of gRPC connections: they keep one alive, and may not do more than that."""

from __future__ import annotations

import asyncio
import struct
from typing import TYPE_CHECKING

import grpc
import grpc.aio
from ingest_support import EXPORT, body_of

if TYPE_CHECKING:
    from mast_trace_collector.collector import Collector

HELLO = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\x04\0\0\0\0\0"
PING = b"\0\0\x08\x06\0\0\0\0\0" + b"12345678"
GOAWAY = 7
ENHANCE_YOUR_CALM = 11


async def frames(reader: asyncio.StreamReader) -> list[tuple[int, bytes]]:
    """Read types and contents of frames until the connection ends."""
    found = []
    try:
        while True:
            head = await reader.readexactly(9)
            size = int.from_bytes(head[:3], "big")
            found.append((head[3], await reader.readexactly(size)))
    except (asyncio.IncompleteReadError, ConnectionError):
        return found


async def test_a_connection_that_only_pings_is_closed(collector: Collector) -> None:
    host, _, port = collector.grpc_address.rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(HELLO + PING * 1000)
    found = await asyncio.wait_for(frames(reader), 30)
    writer.close()
    last, content = [frame for frame in found if frame[0] == GOAWAY][-1]
    assert (last, struct.unpack(">I", content[4:8])) == (GOAWAY, (ENHANCE_YOUR_CALM,))


async def test_a_client_that_keeps_its_connection_alive_keeps_it(collector: Collector) -> None:
    options = [
        ("grpc.keepalive_time_ms", 1100),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.max_pings_without_data", 0),
    ]
    async with grpc.aio.insecure_channel(collector.grpc_address, options=options) as channel:
        await channel.unary_unary(EXPORT)(body_of("first"))
        watching = asyncio.create_task(
            channel.wait_for_state_change(grpc.ChannelConnectivity.READY)
        )
        changed, _ = await asyncio.wait([watching], timeout=6)
        watching.cancel()
        assert not changed
        await channel.unary_unary(EXPORT)(body_of("second"))
