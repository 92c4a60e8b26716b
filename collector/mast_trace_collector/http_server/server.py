"""An HTTP server inside the event loop of another owner."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import socket
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import quote

import uvicorn

from mast_trace.exceptions import ConfigurationError
from mast_trace_collector.http_server.limits import HTTPLimits, PacedBodies, connections_that_fit
from mast_trace_collector.http_server.owner_socket import is_owner, listen_on
from mast_trace_collector.http_server.protocol import BoundedProtocol

if TYPE_CHECKING:
    import ssl


logger = logging.getLogger(__name__)

_EXHAUSTED = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}
_PAUSE_SECONDS = 0.1
# Seconds that a connection may take to send its request before it counts as idle.
_YOUNG_SECONDS = 0.2
# Number of connections beyond the limit that are answered with 503 at a time; others are closed.
_STANDING = 16

_STOP_SECONDS = 10
_BACKLOG = 512


class Acceptor:
    """Accepts connections until it is closed.

    At the limit, the connections that have been idle for longest are closed. If none is idle, a few
    more are accepted, whose requests the server answers with 503.

    Args:
        listener: the listening socket.
        make: makes the protocol of a connection.
        connections: those of the server.
        idle: those without a request, with the time since when, the longest idle first.
        most: number of connections at a time.
        handshake: seconds that a TLS handshake may take.
        tls: context, if the connections are encrypted.
        refused: called with the reason for which a connection was refused.
        admits: returns whether the peer may connect at all.
    """

    def __init__(
        self,
        listener: socket.socket,
        make: Callable[[], asyncio.Protocol],
        connections: Collection[Any],
        idle: dict[BoundedProtocol, float],
        most: int,
        *,
        handshake: float,
        tls: ssl.SSLContext | None,
        refused: Callable[[str], None],
        admits: Callable[[socket.socket], bool] = lambda _: True,
    ) -> None:
        self._admits = admits
        self._listener = listener
        self._make = make
        self._connections = connections
        self._idle = idle
        self._most = most
        self._tls = tls
        self._handshake = handshake if tls else None
        self._refused = refused
        self._entering: set[asyncio.Task[None]] = set()
        self._accepting = asyncio.create_task(self._accept())

    def close(self) -> None:
        """Accept no more."""
        self._accepting.cancel()

    async def wait_closed(self) -> None:
        """Return once nothing is being accepted any more."""
        await asyncio.gather(self._accepting, *self._entering, return_exceptions=True)

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                connection, _ = await loop.sock_accept(self._listener)
            except OSError as error:
                if error.errno in _EXHAUSTED:
                    logger.warning("cannot accept connections: %s", error)
                    self._refused("no_resources")
                    self._make_room()
                    await asyncio.sleep(_PAUSE_SECONDS)
                continue
            if self._admits(connection):
                self._admit(connection)
            else:
                self._refused("stranger")
                connection.close()
            # While more connections wait, accepting never yields; other tasks must have their turn.
            await asyncio.sleep(0)

    def _admit(self, connection: socket.socket) -> None:
        taken = len(self._connections) + len(self._entering)
        while taken >= self._most and self._make_room():
            taken -= 1
        if taken >= self._most + _STANDING:
            self._refused("too_many_connections")
            connection.close()
            return
        task = asyncio.create_task(self._enter(connection))
        self._entering.add(task)
        task.add_done_callback(self._entering.discard)

    def _make_room(self) -> bool:
        for longest_idle, since in self._idle.items():
            if asyncio.get_running_loop().time() - since < _YOUNG_SECONDS:
                return False
            del self._idle[longest_idle]
            longest_idle.give_way()
            return True
        return False

    async def _enter(self, connection: socket.socket) -> None:
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                self._make, connection, ssl=self._tls, ssl_handshake_timeout=self._handshake
            )
        except (OSError, asyncio.TimeoutError) as error:
            logger.debug("a connection ended before its first request: %r", error)
            self._refused("handshake")
            connection.close()


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


def refuse_taken(places: Iterable[tuple[str, int]]) -> None:
    """Name all ports that other programs have, before the first server starts.

    Raises:
        ConfigurationError: others have some of them.
    """
    taken: list[str] = []
    last = OSError()
    for host, port in places:
        try:
            _bound(host, port).close()
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                taken, last = [*taken, f"{host}:{port}"], error
    if taken:
        raise ConfigurationError(f"cannot listen on {', '.join(taken)}: {_advice(last)}") from last


def _listen(host: str, port: int) -> socket.socket:
    try:
        listener = _bound(host, port)
    except OSError as error:
        raise ConfigurationError(f"cannot listen on {host}:{port}: {_advice(error)}") from error
    listener.setblocking(False)
    return listener


def _bound(host: str, port: int) -> socket.socket:
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
    return listener


def _advice(error: OSError) -> str:
    if error.errno != errno.EADDRINUSE:
        return str(error)
    return (
        "another program is there. If that is a `mast-trace up`, use or stop it; otherwise take other ports, "
        "such as free ones by --http-port 0, --grpc-port 0, --clickhouse-port 0 or --web-port 0."
    )


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
