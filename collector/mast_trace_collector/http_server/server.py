"""An HTTP server inside the event loop of another owner."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import quote

import uvicorn

from mast_trace.exceptions import ConfigurationError
from mast_trace_collector.http_server.admission import Acceptor
from mast_trace_collector.http_server.limits import HTTPLimits
from mast_trace_collector.http_server.owner_socket import is_owner, listen_on
from mast_trace_collector.http_server.pace import PacedBodies
from mast_trace_collector.http_server.protocol import BoundedProtocol
from mast_trace_collector.open_files import connections_that_fit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

_STOP_SECONDS = 10
_BACKLOG = 512


class HTTPServer:
    """The uvicorn server, without its signal handlers and with limits on connections.

    Args:
        app: the ASGI application.
        host: address to listen on.
        port: 0 takes a free one.
        limits: of each connection, and of their number.
        paced: end bodies that arrive too slowly; False for an application that does so itself.
        part: the share of this process's open files that connections may take.
        tls: certificate chain and private key, in PEM files.
        refused: called with the reason, one word, for which a connection or a request was refused.
        socket_path: of a Unix socket, for this user's processes alone, in place of host and port.
    """

    def __init__(
        self,
        app: Any,
        host: str = "",
        port: int = 0,
        *,
        limits: HTTPLimits | None = None,
        paced: bool = True,
        part: float = 0.125,
        tls: tuple[Path, Path] | None = None,
        refused: Callable[[str], None] = lambda _: None,
        socket_path: Path | None = None,
    ) -> None:
        self._host = host
        self._port = port
        self._tls = tls
        self._socket_path = socket_path
        limits = limits or HTTPLimits()
        limits = replace(limits, connections=connections_that_fit(limits.connections, part))
        protocol = _protocol(limits, refused)
        config = uvicorn.Config(
            PacedBodies(app, limits, refused) if paced else app,
            http=protocol,
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            # uvicorn answers 503 from the next connection on.
            limit_concurrency=limits.connections + 1,
            timeout_keep_alive=limits.keep_alive,
            timeout_graceful_shutdown=_STOP_SECONDS,
            ssl_certfile=tls[0] if tls else None,
            ssl_keyfile=tls[1] if tls else None,
        )
        try:
            config.load()
        except OSError as error:
            raise ConfigurationError(f"cannot use the TLS certificate: {error}") from error
        self._server = _Server(config, protocol, is_owner if socket_path else lambda _: True)
        self._task: asyncio.Task[None] | None = None
        self.address = ""

    async def start(self) -> None:
        """Listen; `address` then holds the URL.

        Raises:
            ConfigurationError: the address cannot be listened on.
        """
        if self._socket_path is not None:
            await self._serve(listen_on(self._socket_path))
            self.address = f"http+unix://{quote(str(self._socket_path))}"
            return
        listener = _listen(self._host, self._port)
        port = listener.getsockname()[1]
        scheme = "https" if self._tls else "http"
        host = f"[{self._host}]" if ":" in self._host else self._host
        await self._serve(listener)
        self.address = f"{scheme}://{host}:{port}"

    async def stop(self) -> None:
        """Accept no more connections, answer requests in flight, and end; safe to call twice."""
        task, self._task = self._task, None
        if task is not None:
            self._server.should_exit = True
            await task
            if self._socket_path is not None:
                self._socket_path.unlink(missing_ok=True)

    async def _serve(self, listener: socket.socket) -> None:
        self._task = asyncio.create_task(self._server.serve(sockets=[listener]))
        await self._server.listening.wait()


def _protocol(
    limits_of_all: HTTPLimits, on_refused: Callable[[str], None]
) -> type[BoundedProtocol]:
    class Protocol(BoundedProtocol):
        limits = limits_of_all
        idle: ClassVar[dict[BoundedProtocol, float]] = {}
        refused = staticmethod(on_refused)

    return Protocol


def _listen(host: str, port: int) -> socket.socket:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, protocol)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
            listener.listen(_BACKLOG)
        except OSError:
            listener.close()
            raise
    except OSError as error:
        raise ConfigurationError(f"cannot listen on {host}:{port}: {error}") from error
    listener.setblocking(False)
    return listener


class _Server(uvicorn.Server):
    def __init__(
        self,
        config: uvicorn.Config,
        protocol: type[BoundedProtocol],
        admits: Callable[[socket.socket], bool],
    ) -> None:
        super().__init__(config)
        self._protocol = protocol
        self._admits = admits
        self.listening = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept connections with our own acceptor instead of the event loop's."""
        await self.lifespan.startup()
        limits = self._protocol.limits
        acceptors: list[Any] = [  # closed and awaited like the event loop's
            Acceptor(
                listener,
                self._connection,
                self.server_state.connections,
                self._protocol.idle,
                limits.connections,
                handshake=limits.header_timeout,
                tls=self.config.ssl,
                refused=self._protocol.refused,
                admits=self._admits,
            )
            for listener in sockets or ()
        ]
        self.servers = acceptors
        self.started = True
        self.listening.set()

    def _connection(self) -> BoundedProtocol:
        return self._protocol(self.config, self.server_state, self.lifespan.state)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to the program."""
        yield
