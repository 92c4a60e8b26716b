"""Writes many things in one statement, so that one that breaks it is found and fails alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from mast_trace_collector.storage.transient import is_too_large, is_transient

T = TypeVar("T")


def apart(
    things: Sequence[T],
    write: Callable[[Sequence[T]], None],
    refused: Callable[[T, Exception], None],
) -> None:
    """Write things together; where that fails, write parts of them, so that each fails for itself alone.

    Args:
        things: at least one.
        write: may be called again with things that it has written.
        refused: called with a thing that cannot be written, and the reason. Where others were written, that may be an
            error that passes.

    Raises:
        StorageError: the database does not answer, or has no room now; nothing is said about any thing.
        OSError: likewise.
    """
    try:
        write(things)
    except Exception as error:
        if is_transient(error) and not is_too_large(error):
            if len(things) == 1:
                raise
            _one_by_one(things, write, refused)
        elif len(things) == 1:
            refused(things[0], error)
        else:
            middle = len(things) // 2
            apart(things[:middle], write, refused)
            apart(things[middle:], write, refused)


def _one_by_one(
    things: Sequence[T],
    write: Callable[[Sequence[T]], None],
    refused: Callable[[T, Exception], None],
) -> None:
    """Write things that failed together with an error that passes: if two fail alone and none succeeds, it has not."""
    late: list[tuple[T, Exception]] = []
    written = False
    for thing in things:
        try:
            write([thing])
            written = True
        except Exception as error:
            if is_transient(error) and not is_too_large(error):
                late.append((thing, error))
                if len(late) > 1 and not written:
                    raise
            else:
                refused(thing, error)
    for thing, reason in late:
        if not written:
            raise reason
        refused(thing, reason)
