"""A lock on a run across the processes of a machine, so that two do not replay it at once."""

from __future__ import annotations

import fcntl
import hashlib
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@contextmanager
def locked_run(folder: Path, project: str, trace_id: str) -> Iterator[bool]:
    """Lock a run for the block; yield False if another process has locked it.

    The kernel removes the lock of a process that is killed. Programs that are started meanwhile do not
    inherit it.

    Args:
        folder: of the locks; made if it is missing.
        project: of the run.
        trace_id: of the run.
    """
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    # An id from the store is no file name.
    name = hashlib.sha256(f"{project}\0{trace_id}".encode()).hexdigest()[:32]
    path = folder / f"{name}.lock"
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
    finally:
        os.close(descriptor)
