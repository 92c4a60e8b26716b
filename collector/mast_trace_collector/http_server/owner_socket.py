"""A Unix socket that only its owner's processes, and root's, can use.

The kernel identifies the peer. So there is no secret that could be read from a disk, and no
database engine, template or page can be made to open the socket by a URL.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import socket
import struct
import sys
import tempfile
from pathlib import Path
from typing import Final

from mast_trace.exceptions import ConfigurationError

NAME: Final = "owner.sock"
_LONGEST = 100
"""Bytes of a socket's path; the kernel takes 104 to 108."""
_BACKLOG = 64
_DARWIN_PEER = (
    0,
    1,
    76,
    "Ii",
)  # SOL_LOCAL, LOCAL_PEERCRED, sizeof(struct xucred), version and user


def socket_path(data_dir: Path) -> Path:
    """Return the path of a folder's socket: in it, or elsewhere if its path is too long.

    Raises:
        ConfigurationError: the other folder belongs to another user.
    """
    path = data_dir / NAME
    if len(os.fsencode(path)) <= _LONGEST:
        return path
    base = os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir()
    folder = Path(base, f"mast-trace-{os.getuid()}")
    folder.mkdir(mode=0o700, exist_ok=True)
    status = folder.lstat()
    if folder.is_symlink() or status.st_uid != os.getuid() or status.st_mode & 0o077:
        raise ConfigurationError(
            f"{folder} must be a folder that belongs to this user alone (mode 700): the socket of "
            "commands is made there, because the path of the data folder is too long for one"
        )
    return folder / f"{hashlib.sha256(os.fsencode(data_dir)).hexdigest()[:32]}.sock"


def listen_on(path: Path) -> socket.socket:
    """Return a socket that listens there; the socket of a killed process is replaced.

    Raises:
        ConfigurationError: it cannot be made.
    """
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with contextlib.suppress(FileNotFoundError):
            path.unlink()
        listener.bind(str(path))
        path.chmod(0o600)
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        raise ConfigurationError(f"cannot listen on {path}: {error}") from error
    listener.setblocking(False)
    return listener


def is_owner(connection: socket.socket) -> bool:
    """Return whether the peer is a process of this user, or root's."""
    return _user(connection) in {0, os.geteuid()}


def _user(connection: socket.socket) -> int:
    """Return the user id of the peer; -1 where the system does not provide it."""
    if hasattr(socket, "SO_PEERCRED"):
        data = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        return int(struct.unpack("3i", data)[1])
    if sys.platform == "darwin":
        level, option, size, form = _DARWIN_PEER
        data = connection.getsockopt(level, option, size)
        return int(struct.unpack_from(form, data)[1])
    return -1
