"""HTTP over a Unix socket, for clients on the same machine."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Any

from urllib3 import HTTPConnectionPool, PoolManager
from urllib3.connection import HTTPConnection
from urllib3.exceptions import NewConnectionError

if TYPE_CHECKING:
    from pathlib import Path


class SocketPoolManager(PoolManager):
    """Connections that lead to one socket, for any host name.

    Args:
        path: of the socket.
        **options: of urllib3's pool.
    """

    def __init__(self, path: Path, **options: Any) -> None:
        super().__init__(**options)
        self._path = path
        self._pool = _Pool(path)

    def connection_from_host(self, *_: Any, **__: Any) -> HTTPConnectionPool:
        """Return the pool of the socket."""
        return self._pool

    def clear(self) -> None:
        """Close the idle connections; others are opened on demand."""
        super().clear()
        closed, self._pool = self._pool, _Pool(self._path)
        closed.close()


class _Pool(HTTPConnectionPool):
    def __init__(self, path: Path) -> None:
        super().__init__("localhost")
        self._path = path

    def _new_conn(self) -> HTTPConnection:
        return _Connection(self._path, timeout=self.timeout.connect_timeout)


class _Connection(HTTPConnection):
    def __init__(self, path: Path, **options: Any) -> None:
        super().__init__("localhost", **options)
        self._path = path

    def _new_conn(self) -> socket.socket:
        made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            # A number, None, or urllib3's value for the system default.
            made.settimeout(self.timeout if isinstance(self.timeout, int | float) else None)
            made.connect(str(self._path))
        except OSError as error:
            made.close()
            raise NewConnectionError(self, f"cannot connect to {self._path}: {error}") from error
        return made
