"""Writes many things in one statement, so that one that breaks it is found and fails alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from mast_trace_collector.storage.transient import is_too_large, is_transient

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

T = TypeVar("T")


def apart(
    things: Sequence[T],
    write: Callable[[Sequence[T]], None],
    refused: Callable[[T, Exception], None],
) -> None:
    """Write things together; where that fails, write halves of them, down to the one that fails.

    Args:
        things: at least one.
        write: may be called again with things that it has written.
        refused: called with a thing that cannot be written, and the reason, which may be that it is too large.

    Raises:
        StorageError: the database does not answer, or has no room now; some may have been written.
        OSError: likewise.
    """
    try:
        write(things)
    except Exception as error:
        if is_transient(error) and not is_too_large(error):
            raise
        if len(things) == 1:
            refused(things[0], error)
            return
        middle = len(things) // 2
        apart(things[:middle], write, refused)
        apart(things[middle:], write, refused)
