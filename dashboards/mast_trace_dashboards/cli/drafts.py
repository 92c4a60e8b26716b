"""Output files that appear whole or not at all."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@contextmanager
def draft_of(path: Path) -> Iterator[Path]:
    """Open a file for writing that replaces ``path`` once it is complete.

    A device or a pipe, such as ``/dev/stdout``, is written directly: it cannot be replaced. For a
    symbolic link its target is replaced.
    """
    if path.exists() and not path.is_file() and not path.is_dir():
        yield path
        return
    whole = path.resolve()
    draft = whole.with_name(f"{whole.name}.part")
    try:
        yield draft
        draft.replace(whole)
    finally:
        draft.unlink(missing_ok=True)
