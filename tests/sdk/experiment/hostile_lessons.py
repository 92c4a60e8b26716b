"""A server that answers a request for lessons in any way, byte by byte."""

from __future__ import annotations

import socket
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@contextmanager
def server(answer: Callable[[socket.socket], None]) -> Iterator[tuple[str, list[bytes]]]:
    """Yield the address of a server that hands each connection to ``answer``, and the requests so far."""
    listening = socket.create_server(("127.0.0.1", 0))
    requests: list[bytes] = []
    connections: list[socket.socket] = []
    stopped = threading.Event()

    def serve() -> None:
        while not stopped.is_set():
            try:
                connection, _ = listening.accept()
            except OSError:
                return
            connections.append(connection)
            threading.Thread(target=one, args=(connection,), daemon=True).start()

    def one(connection: socket.socket) -> None:
        with connection:
            try:
                requests.append(connection.recv(65536))
                answer(connection)
            except OSError:
                pass  # the client has left

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}", requests
    finally:
        stopped.set()
        listening.close()
        for connection in connections:
            with suppress(OSError):  # the other end has closed it
                connection.shutdown(socket.SHUT_RDWR)


def response(
    body: bytes, *, status: str = "200 OK", kind: str = "application/json", more: str = ""
) -> bytes:
    """A whole answer."""
    head = f"HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {len(body)}\r\n{more}\r\n"
    return head.encode() + body


def sends(data: bytes) -> Callable[[socket.socket], None]:
    """An answer of these bytes."""
    return lambda connection: connection.sendall(data)
