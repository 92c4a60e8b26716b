"""Atomic writes of small files: readers see the old file or the new one."""

from __future__ import annotations

import os
from pathlib import Path


def write_whole(path: Path, text: str, *, private: bool = False) -> None:
    """Write a file atomically; a reader, also after a crash, finds the old text or the new one.

    Args:
        path: of the file; its folder must exist.
        text: of the file.
        private: readable by this user alone.
    """
    draft = path.with_name(f"{path.name}.new")
    draft.unlink(missing_ok=True)
    mode = 0o600 if private else 0o666
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
