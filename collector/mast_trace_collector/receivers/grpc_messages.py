"""The messages of gRPC calls: read a few at a time, since only the library sees them arrive.

The library allocates a message while a handler asks for it, and buffers earlier bytes: some
kilobytes of each call, some megabytes of each connection. So the limit is on the number of calls
that ask, in all and of one sender.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from typing import TYPE_CHECKING, Any

from mast_trace_collector.open_files import connections_that_fit
from mast_trace_collector.otlp.errors import RequestError, TooSlow
from mast_trace_collector.receivers.slots import Slots
from mast_trace_collector.spool import Refused

if TYPE_CHECKING:
    from collections.abc import Iterator

    import grpc.aio

    from mast_trace_collector.config import CollectorConfig

_PART_OF_FILES = 0.25
_STREAMS = 100
_METADATA_BYTES = 16 * 1024
_READ_CHUNK = 64 * 1024
# Bytes of each call that arrive before its message is asked for; most messages arrive as a whole.
_AHEAD = 256 * 1024
MAX_CALLS = 128
# Clients that keep a connection alive ping at most every ten seconds by default.
_PING_MS = 1000
_PING_STRIKES = 2


def grpc_options(config: CollectorConfig) -> list[tuple[str, int]]:
    """Return the options of the library's server, in its own names."""
    grace = int(config.header_timeout_seconds * 1000)
    return [
        ("grpc.max_receive_message_length", config.max_body_bytes),
        # Otherwise a second collector would silently share the port.
        ("grpc.so_reuseport", 0),
        ("grpc.max_allowed_incoming_connections", _connections(config)),
        ("grpc.max_concurrent_streams", _STREAMS),
        ("grpc.max_metadata_size", min(_METADATA_BYTES, config.max_header_bytes)),
        ("grpc.absolute_max_metadata_size", config.max_header_bytes),
        ("grpc.server_handshake_timeout_ms", grace),
        ("grpc.max_connection_idle_ms", config.keep_alive_seconds * 1000),
        ("grpc.experimental.tcp_max_read_chunk_size", _READ_CHUNK),
        # Otherwise a connection gets megabytes of buffer in advance when its sender is fast.
        ("grpc.http2.bdp_probe", 0),
        ("grpc.http2.lookahead_bytes", _AHEAD),
        # A connection that only pings would cost the library's time for answers and their memory.
        ("grpc.http2.max_ping_strikes", _PING_STRIKES),
        ("grpc.http2.min_ping_interval_without_data_ms", _PING_MS),
        ("grpc.keepalive_permit_without_calls", 1),
    ]


def _connections(config: CollectorConfig) -> int:
    return connections_that_fit(config.max_connections, _PART_OF_FILES)


class Messages:
    """Reads the one message of a call.

    Args:
        config: limits.
    """

    def __init__(self, config: CollectorConfig) -> None:
        self._seconds = config.request_timeout_seconds
        # A sender's half of these is the memory of all HTTP requests together.
        self._slots = Slots(2 * max(1, config.max_inflight_bytes // config.max_body_bytes))

        self._calls: Counter[str] = Counter()

    async def read(self, context: grpc.aio.ServicerContext[Any, Any], sender: str) -> bytes:
        """Wait for a slot, and then for the message.

        Raises:
            TooSlow: it does not arrive in time.
            Refused: no slot is free in time, or the sender's calls take up half of all.
            RequestError: the call ended without one.
        """
        with self._counted(sender):
            try:
                await asyncio.wait_for(self._slots.take(sender), self._seconds)
            except asyncio.TimeoutError:
                raise Refused(
                    "memory_full", "too many messages are arriving", retry_after=1.0
                ) from None
            try:
                message: Any = await asyncio.wait_for(context.read(), self._seconds)
            except asyncio.TimeoutError:
                raise TooSlow(f"the message did not arrive within {self._seconds:g} s") from None
            finally:
                self._slots.give_back(sender)
        if not isinstance(message, bytes):  # the end of the stream
            raise RequestError("the call has no message")
        return message

    @contextlib.contextmanager
    def _counted(self, sender: str) -> Iterator[None]:
        if self._calls[sender] >= MAX_CALLS // 2:
            raise Refused(
                "share_full", "the calls of this sender take up half of all slots", retry_after=1.0
            )
        self._calls[sender] += 1
        try:
            yield
        finally:
            self._calls[sender] -= 1
            if not self._calls[sender]:
                del self._calls[sender]
