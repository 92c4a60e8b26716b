"""Accepts the connections of an HTTP server, up to a limit."""

from __future__ import annotations

import asyncio
import errno
import logging
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import socket
    import ssl
    from collections.abc import Callable, Collection

    from mast_trace_collector.http_server.protocol import BoundedProtocol

logger = logging.getLogger(__name__)

_EXHAUSTED = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}
_PAUSE_SECONDS = 0.1
# Seconds that a connection may take to send its request before it counts as idle.
_YOUNG_SECONDS = 0.2
# Number of connections beyond the limit that are answered with 503 at a time; others are closed.
_STANDING = 16


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
