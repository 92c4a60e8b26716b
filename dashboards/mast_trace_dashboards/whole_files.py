"""Small files that are there whole or as they were before, whatever happens meanwhile."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def write_whole(path: Path, text: str, *, private: bool = False) -> None:
    """Write a file; whoever reads it, also after a crash, finds the old text or the new one.

    Args:
        path: of the file, whose folder exists.
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
