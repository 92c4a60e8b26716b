"""A lock across processes that pauses storing for a moment: for backups.

While it is held, collectors go on acknowledging requests and leave them in their spools. Both sides
lock files of the data folder; the lock of a process that is killed ends with it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

HELD_FILE = ".held"
NEXT_FILE = ".held-next"
_POLL_SECONDS = 0.05


class Hold:
    """The locks of one data folder.

    A holder takes the second lock first, at which all storing threads queue: otherwise those that
    share the first might never release it.

    Args:
        data_dir: of the collector.
    """

    def __init__(self, data_dir: Path) -> None:
        self._held = data_dir / HELD_FILE
        self._next = data_dir / NEXT_FILE

    @contextlib.contextmanager
    def share(self) -> Iterator[bool]:
        """Yield whether storing is permitted now; nobody can hold during the block."""
        with contextlib.ExitStack() as queue, contextlib.ExitStack() as sharing:
            may = queue.enter_context(_locked(self._next, fcntl.LOCK_SH))
            may = may and sharing.enter_context(_locked(self._held, fcntl.LOCK_SH))
            queue.close()
            yield may

    @contextlib.contextmanager
    def take(self, wait: Callable[[], None] = lambda: None) -> Iterator[None]:
        """Hold, once all storing threads have finished their segment.

        Args:
            wait: called repeatedly while waiting; an exception of it ends the waiting.
        """
        with contextlib.ExitStack() as locks:
            for path in (self._next, self._held):
                while not locks.enter_context(_locked(path, fcntl.LOCK_EX)):
                    wait()
                    time.sleep(_POLL_SECONDS)
            yield


@contextlib.contextmanager
def _locked(path: Path, how: int) -> Iterator[bool]:
    """Lock a file; return None if another process has it."""
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
