"""OTLP over gRPC.

The messages of gRPC calls: read a few at a time, since only the library sees them arrive.

The library allocates a message while a handler asks for it, and buffers earlier bytes: some
kilobytes of each call, some megabytes of each connection. So the limit is on the number of calls
that ask, in all and of one sender.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import grpc
import grpc.aio
from google.protobuf.any_pb2 import Any as AnyMessage
from google.rpc.error_details_pb2 import RetryInfo
from google.rpc.status_pb2 import Status

from mast_trace.exceptions import ConfigurationError
from mast_trace_collector.http_server.limits import connections_that_fit
from mast_trace_collector.otlp.errors import (
    Forbidden,
    RequestError,
    TooLarge,
    TooSlow,
    Unauthenticated,
)
from mast_trace_collector.otlp.signals import LOGS, METRICS_SERVICE, TRACES, Signal
from mast_trace_collector.receivers.memory import Slots, sender_of
from mast_trace_collector.spool import RequestRefused

if TYPE_CHECKING:
    from mast_trace_collector.config import CollectorConfig
    from mast_trace_collector.receivers.ingest import Ingest

    _Context = grpc.aio.ServicerContext[Any, Any]
    _Handler = Callable[[object, _Context], Awaitable[bytes]]


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

_TRANSPORT = "grpc"
_STOP_SECONDS = 10
_DETAILS = "grpc-status-details-bin"


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
                raise RequestRefused(
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
            raise RequestRefused(
                "share_full", "the calls of this sender take up half of all slots", retry_after=1.0
            )
        self._calls[sender] += 1
        try:
            yield
        finally:
            self._calls[sender] -= 1
            if not self._calls[sender]:
                del self._calls[sender]


class OTLPGRPCReceiver:
    """Serves the export services of the accepted signals; the others are unimplemented.

    Args:
        ingest: accepts the requests.
        config: address and limits.
    """

    def __init__(self, ingest: Ingest, config: CollectorConfig) -> None:
        self._ingest = ingest
        self._config = config
        self._messages = Messages(config)
        self._server: grpc.aio.Server | None = None
        self.address = ""

    async def start(self) -> None:
        """Listen; `address` then holds host and port.

        Raises:
            ConfigurationError: the address cannot be listened on.
        """
        config = self._config
        server = grpc.aio.server(
            options=grpc_options(config),
            maximum_concurrent_rpcs=MAX_CALLS,
        )
        server.add_generic_rpc_handlers(tuple(self._services()))
        host = f"[{config.host}]" if ":" in config.host else config.host
        try:
            port = self._bind(server, f"{host}:{config.grpc_port}")
        except RuntimeError as error:
            raise ConfigurationError(
                f"cannot listen on {host}:{config.grpc_port}: {error}"
            ) from error
        await server.start()
        self._server = server
        self.address = f"{host}:{port}"

    def _bind(self, server: grpc.aio.Server, address: str) -> int:
        cert, key = self._config.tls_cert_file, self._config.tls_key_file
        if cert is None or key is None:
            return int(server.add_insecure_port(address))
        return int(server.add_secure_port(address, _credentials(cert, key)))

    def _services(self) -> list[grpc.GenericRpcHandler[Any, Any]]:
        accepted = self._ingest.signals
        handlers = [
            _service(signal.service, self._exporter(signal))
            for signal in (TRACES, LOGS)
            if signal in accepted
        ]
        handlers += [
            _service(signal.service, _unimplemented(signal.name))
            for signal in (TRACES, LOGS)
            if signal not in accepted
        ]
        return [*handlers, _service(METRICS_SERVICE, _unimplemented("metrics"))]

    def _exporter(self, signal: Signal) -> _Handler:
        async def export(_: object, context: _Context) -> bytes:
            self._ingest.metrics[signal].received.labels(_TRANSPORT).inc()
            try:
                answer: bytes = await self._take(context, signal)
            except RequestError as error:
                self._refused(signal, error.reason)
                await context.abort(_code(error), str(error))
            except RequestRefused as error:
                self._refused(signal, error.reason)
                await _refuse(context, error)
            return answer

        return export

    async def _take(self, context: _Context, signal: Signal) -> bytes:
        metadata = dict(context.invocation_metadata() or ())
        authorization = metadata.get("authorization", "")
        project = self._ingest.authenticate(
            authorization if isinstance(authorization, str) else authorization.decode("latin-1")
        )
        self._ingest.check_room(signal)
        with self._ingest.holding(_peer(context.peer())) as memory:
            memory.belongs_to(project)
            body = await self._messages.read(context, memory.sender)
            memory.grow(len(body))
            answer = await self._ingest.take(
                body, signal, memory, transport=_TRANSPORT, project=project
            )
        content: bytes = answer.SerializeToString()
        return content

    def _refused(self, signal: Signal, reason: str) -> None:
        self._ingest.metrics[signal].refused.labels(_TRANSPORT, reason).inc()

    async def stop(self) -> None:
        """Accept no more calls and finish those in flight; safe to call twice."""
        server, self._server = self._server, None
        if server is not None:
            await server.stop(_STOP_SECONDS)


def _credentials(cert: Path, key: Path) -> grpc.ServerCredentials:
    try:
        return grpc.ssl_server_credentials([(key.read_bytes(), cert.read_bytes())])
    except OSError as error:
        raise ConfigurationError(f"cannot use the TLS certificate: {error}") from error


def _service(name: str, export: _Handler) -> grpc.GenericRpcHandler[Any, Any]:
    # No serializers: the sender's own bytes go to the spool. A stream of one message is the same on
    # the wire, but is read when the handler asks for it: after the key was checked, and when there
    # is a free slot.
    handler = grpc.stream_unary_rpc_method_handler(export)
    return grpc.method_handlers_generic_handler(name, {"Export": handler})


def _unimplemented(signal: str) -> _Handler:
    async def refuse(_: object, context: _Context) -> bytes:
        await context.abort(
            grpc.StatusCode.UNIMPLEMENTED, f"this collector does not receive {signal}"
        )
        return b""

    return refuse


def _peer(peer: str) -> str:
    """Return the key of the sender at an address such as ``ipv4:127.0.0.1:40000``."""
    host = unquote(peer.partition(":")[2]).rpartition(":")[0]
    return sender_of(host.strip("[]"))


def _code(error: RequestError) -> grpc.StatusCode:
    if isinstance(error, Unauthenticated):
        return grpc.StatusCode.UNAUTHENTICATED
    if isinstance(error, Forbidden):
        return grpc.StatusCode.PERMISSION_DENIED
    if isinstance(error, TooLarge):
        return grpc.StatusCode.RESOURCE_EXHAUSTED
    if isinstance(error, TooSlow):
        return grpc.StatusCode.DEADLINE_EXCEEDED
    return grpc.StatusCode.INVALID_ARGUMENT


async def _refuse(context: _Context, error: RequestRefused) -> None:
    """Tell the sender to retry, and when."""
    when = RetryInfo()
    when.retry_delay.FromMilliseconds(int(error.retry_after * 1000))
    detail = AnyMessage()
    detail.Pack(when)
    code = grpc.StatusCode.UNAVAILABLE
    status = Status(code=code.value[0], message=str(error), details=[detail])
    await context.abort(code, str(error), ((_DETAILS, status.SerializeToString()),))
