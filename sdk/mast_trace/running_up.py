"""Announcements of `mast-trace up`, by which programs of the same user find its port.

An announcement is a file of this user, mode 0600, that the running process keeps locked: the lock of a process that
is killed ends with it, so that no text is sent to a stranger who has its port since.
"""

from __future__ import annotations

import logging
import os
import secrets
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from mast_trace.environment import PREFIX

try:
    import fcntl
except ImportError:  # Windows: nothing is announced
    fcntl = None  # type: ignore[assignment]

logger = logging.getLogger("mast_trace")

FOLDER: Final = ".local/share/mast-trace/running"
"""The folder of the announcements, in the home of the user."""
ORIGIN: Final = "running `mast-trace up`"
"""The origin of an endpoint that was found."""
_APART: Final = (f"{PREFIX}REPLAY", "PYTEST_VERSION", "PYTEST_CURRENT_TEST")
"""Variables of replays and of tests, which find nothing and announce nothing."""
_SUFFIX: Final = ".url"
_LONGEST: Final = 1024


def found() -> list[str]:
    """Return the addresses of the running `mast-trace up` of this user; none in replays and tests."""
    if fcntl is None or _is_apart():
        return []
    with suppress(OSError, RuntimeError):  # no such folder, or no home
        paths = sorted(Path.home().joinpath(FOLDER).glob(f"*{_SUFFIX}"))
        return [address for path in paths if (address := _read(path))]
    return []


def choice(addresses: Sequence[str]) -> str:
    """Return the remedy where several run."""
    lines = " or ".join(f"OTEL_EXPORTER_OTLP_ENDPOINT={address}" for address in addresses)
    return f"set {lines}."


@contextmanager
def announced(address: str) -> Iterator[None]:
    """Announce an address during a block; where that is impossible, the log says so."""
    path = descriptor = None
    try:
        if fcntl is not None and not _is_apart():
            path, descriptor = _write(address)
    except (OSError, RuntimeError) as error:
        logger.warning("programs cannot find this address by themselves: %s", error)
    try:
        yield
    finally:
        if path is not None and descriptor is not None:
            path.unlink(missing_ok=True)
            os.close(descriptor)


def _is_apart() -> bool:
    return any(name in os.environ for name in _APART)


def _write(address: str) -> tuple[Path, int]:
    folder = Path.home() / FOLDER
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    for path in folder.glob(f"*{_SUFFIX}"):
        if not _read(path):  # a killed process has left it
            path.unlink(missing_ok=True)
    path = folder / secrets.token_hex(8)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    os.write(descriptor, address.encode())
    return path.rename(path.with_suffix(_SUFFIX)), descriptor  # complete and locked once it is seen


def _read(path: Path) -> str:
    """Return the address in a file of this user that a process has locked; empty for any other file."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return ""
    try:
        about = os.fstat(descriptor)
        if not stat.S_ISREG(about.st_mode) or about.st_uid != os.getuid() or about.st_mode & 0o077:
            return ""
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return os.read(descriptor, _LONGEST).decode(errors="replace").rstrip("/")
    except OSError:
        return ""
    finally:
        os.close(descriptor)
    return ""
