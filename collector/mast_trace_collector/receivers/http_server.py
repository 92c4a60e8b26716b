"""An HTTP server inside an event loop that belongs to somebody else."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from typing import TYPE_CHECKING, Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from mast_trace.exceptions import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_MAX_HEADER_BYTES = 64 * 1024
_STOP_SECONDS = 10


class HTTPServer:
    """uvicorn, without its signal handlers and with bounds on headers.

    Args:
        app: the ASGI application.
        host: address to listen on.
        port: 0 takes a free one.
        header_timeout: seconds that a connection has to send a request's headers.
        keep_alive: seconds that an idle connection is kept.
        max_connections: beyond it the answer is 503.
        tls: certificate chain and private key, in PEM files.
    """

    def __init__(
        self,
        app: Any,
        host: str,
        port: int,
        *,
        header_timeout: float = 10.0,
        keep_alive: int = 75,
        max_connections: int = 1024,
        tls: tuple[Path, Path] | None = None,
    ) -> None:
        self._host = host
        self._port = port
        self._tls = tls

        class BoundedProtocol(_BoundedProtocol):
            timeout = header_timeout

        config = uvicorn.Config(
            app,
            http=BoundedProtocol,
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            backlog=512,
            limit_concurrency=max_connections,
            timeout_keep_alive=keep_alive,
            timeout_graceful_shutdown=_STOP_SECONDS,
            ssl_certfile=tls[0] if tls else None,
            ssl_keyfile=tls[1] if tls else None,
        )
        try:
            config.load()
        except OSError as error:
            raise ConfigurationError(f"cannot use the TLS certificate: {error}") from error
        self._server = _Server(config)
        self._task: asyncio.Task[None] | None = None
        self.address = ""

    async def start(self) -> None:
        """Listen; `address` then holds the URL.

        Raises:
            ConfigurationError: the address cannot be listened on.
        """
        listener = _listen(self._host, self._port)
        port = listener.getsockname()[1]
        scheme = "https" if self._tls else "http"
        host = f"[{self._host}]" if ":" in self._host else self._host
        self._task = asyncio.create_task(self._server.serve(sockets=[listener]))
        await self._server.listening.wait()
        self.address = f"{scheme}://{host}:{port}"

    async def stop(self) -> None:
        """Take no more connections, answer what is in flight, and end; safe to call twice."""
        task, self._task = self._task, None
        if task is not None:
            self._server.should_exit = True
            await task


def _listen(host: str, port: int) -> socket.socket:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, protocol)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
        except OSError:
            listener.close()
            raise
    except OSError as error:
        raise ConfigurationError(f"cannot listen on {host}:{port}: {error}") from error
    listener.setblocking(False)
    return listener


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.listening = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.listening.set()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to the program."""
        yield


class _BoundedProtocol(HttpToolsProtocol):
    """Closes connections whose headers come too slowly or are too many."""

    timeout = 10.0
    _deadline: asyncio.TimerHandle | None = None
    _header_bytes = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._await_headers()

    def connection_lost(self, exc: Exception | None) -> None:
        self._headers_are_in()
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        if self._deadline is None:
            self._await_headers()

    def data_received(self, data: bytes) -> None:
        self._header_bytes += len(data)
        super().data_received(data)
        if self._deadline is not None and self._header_bytes > _MAX_HEADER_BYTES:
            self.send_400_response("the headers are too large")

    def on_headers_complete(self) -> None:
        self._headers_are_in()
        super().on_headers_complete()

    def _await_headers(self) -> None:
        self._header_bytes = 0
        self._deadline = self.loop.call_later(self.timeout, self.transport.close)

    def _headers_are_in(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
