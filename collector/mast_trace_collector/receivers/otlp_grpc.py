"""OTLP over gRPC."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import grpc
import grpc.aio
from google.protobuf.any_pb2 import Any as AnyMessage
from google.rpc.error_details_pb2 import RetryInfo
from google.rpc.status_pb2 import Status

from mast_trace.exceptions import ConfigurationError
from mast_trace_collector.otlp.errors import (
    Forbidden,
    RequestError,
    TooLarge,
    TooSlow,
    Unauthenticated,
)
from mast_trace_collector.otlp.signals import LOGS, METRICS_SERVICE, TRACES
from mast_trace_collector.receivers.grpc_messages import MAX_CALLS, Messages, grpc_options
from mast_trace_collector.receivers.memory import sender_of
from mast_trace_collector.spool import Refused

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from mast_trace_collector.config import CollectorConfig
    from mast_trace_collector.otlp.signals import Signal
    from mast_trace_collector.receivers.ingest import Ingest

    _Context = grpc.aio.ServicerContext[Any, Any]
    _Handler = Callable[[object, _Context], Awaitable[bytes]]

_TRANSPORT = "grpc"
_STOP_SECONDS = 10
_DETAILS = "grpc-status-details-bin"


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
            except Refused as error:
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


async def _refuse(context: _Context, error: Refused) -> None:
    """Tell the sender to retry, and when."""
    when = RetryInfo()
    when.retry_delay.FromMilliseconds(int(error.retry_after * 1000))
    detail = AnyMessage()
    detail.Pack(when)
    code = grpc.StatusCode.UNAVAILABLE
    status = Status(code=code.value[0], message=str(error), details=[detail])
    await context.abort(code, str(error), ((_DETAILS, status.SerializeToString()),))
