"""A disk that keeps what was synced, and nothing else: what a power failure leaves of a folder.

A killed process leaves all that it wrote, because the kernel has it; so no kill shows a sync that is
missing. Here every successful `fsync` and `fdatasync` of this process is watched, and the folder is
rebuilt from what they covered: a folder's names as of its own last sync, a file's content as of
its own. As on Linux, a sync that failed takes the file's unwritten data with it, and a later sync
of the same file succeeds without them.
"""

from __future__ import annotations

import errno
import os
import stat
import threading
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

_Inode = tuple[int, int]


class ForgetfulDisk:
    """Watches the syncs of this process from its making until the patch is undone."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self._lock = threading.Lock()
        self._contents: dict[_Inode, bytes] = {}
        self._names: dict[_Inode, dict[str, _Inode]] = {}
        # With its name: the file system gives the inode of a removed file to a new one.
        self._broken: set[tuple[_Inode, Path]] = set()
        self._failures = 0
        for name in ("fsync", "fdatasync"):
            patch.setattr(os, name, self._watched(getattr(os, name)))

    def fail(self, times: int = 1) -> None:
        """Let the next syncs of files fail, as a disk with an error does."""
        self._failures = times

    def after_power_failure(self, folder: Path, target: Path) -> Path:
        """Write what is left of a folder into another."""
        with self._lock:
            self._restore(_inode(folder.stat()), target)
        return target

    def _restore(self, folder: _Inode, target: Path) -> None:
        target.mkdir()
        for name, inode in self._names.get(folder, {}).items():
            if inode in self._names:
                self._restore(inode, target / name)
            else:
                (target / name).write_bytes(self._contents.get(inode, b""))

    def _watched(self, really):
        def sync(file: int) -> None:
            # The whole sync is one step: nothing that is written during it counts as covered.
            with self._lock:
                status = os.fstat(file)
                inode, path = _inode(status), Path(f"/proc/self/fd/{file}").readlink()
                folder = stat.S_ISDIR(status.st_mode)
                if self._failures and not folder:
                    self._failures -= 1
                    self._broken.add((inode, path))
                    raise OSError(errno.EIO, os.strerror(errno.EIO))
                seen = _entries(path) if folder else path.read_bytes()
                really(file)
                if folder:
                    self._names[inode] = seen
                elif (inode, path) not in self._broken:
                    self._contents[inode] = seen

        return sync


def _entries(folder: Path) -> dict[str, _Inode]:
    return {entry.name: _inode(entry.stat()) for entry in os.scandir(folder)}


def _inode(status: os.stat_result) -> _Inode:
    return status.st_dev, status.st_ino
