"""Keeps what is stored still for a moment, across processes: for backups.

While somebody holds, collectors go on to acknowledge and leave what they have acknowledged in their
spools. Both sides lock files of the data folder; the lock of a process that is killed ends with it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

HELD_FILE = ".held"
NEXT_FILE = ".held-next"
_POLL_SECONDS = 0.05


class Hold:
    """The locks of one data folder.

    A holder takes the second lock first, at which all who store queue up: otherwise those who share
    the first might never leave it.

    Args:
        data_dir: of the collector.
    """

    def __init__(self, data_dir: Path) -> None:
        self._held = data_dir / HELD_FILE
        self._next = data_dir / NEXT_FILE

    @contextlib.contextmanager
    def share(self) -> Iterator[bool]:
        """Say whether one may store now; while one does, nobody holds."""
        with contextlib.ExitStack() as queue, contextlib.ExitStack() as sharing:
            may = queue.enter_context(_locked(self._next, fcntl.LOCK_SH))
            may = may and sharing.enter_context(_locked(self._held, fcntl.LOCK_SH))
            queue.close()
            yield may

    @contextlib.contextmanager
    def take(self, wait: Callable[[], None] = lambda: None) -> Iterator[None]:
        """Hold, once all who store have finished with what they are at.

        Args:
            wait: called now and then meanwhile; what it raises ends the waiting.
        """
        with contextlib.ExitStack() as locks:
            for path in (self._next, self._held):
                while not locks.enter_context(_locked(path, fcntl.LOCK_EX)):
                    wait()
                    time.sleep(_POLL_SECONDS)
            yield


@contextlib.contextmanager
def _locked(path: Path, how: int) -> Iterator[bool]:
    """Lock a file, or say that somebody else has it."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, how | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
    finally:
        os.close(descriptor)
