"""Reads files of the spool, also damaged ones."""

from __future__ import annotations

import contextlib
import errno
import mmap
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from mast_trace_collector.spool.record import (
    Record,
    marker_of,
    may_be_torn,
    read_record,
    record_start,
)

_PORTION = 1024 * 1024
_BLOCK = 4096
_BEYOND_READING = frozenset(
    {
        errno.EACCES,
        errno.EISDIR,
        errno.ELOOP,
        errno.ENOENT,
        errno.ENOTDIR,
        errno.ENXIO,
        errno.EPERM,
    }
)
"""Errors of the file itself. Others, such as too many open files, are temporary."""


@dataclass(frozen=True)
class Damage:
    """Bytes of a segment that hold no readable record.

    Attributes:
        segment: the segment's name.
        offset: of the first byte.
        size: number of bytes.
        torn: the bytes are the beginning of a record at the segment's end, left by a process that
            was killed during a write. Such bytes were never acknowledged, unless a receipt covers
            them.
    """

    segment: str
    offset: int
    size: int
    torn: bool


def beyond_reading(error: OSError) -> bool:
    """Return whether waiting will not make a file readable."""
    return error.errno in _BEYOND_READING


def content(path: Path) -> memoryview:
    """Return a file's bytes, in memory as long as they are referenced.

    Unreadable blocks of the disk are zero.

    Raises:
        OSError: it cannot be opened, or is no regular file.
    """
    with _opened(path) as (file, size):
        if size == 0:
            return memoryview(b"")
        if not _is_readable(file, size):
            return _salvaged(file, size)
        return memoryview(mmap.mmap(file, size, access=mmap.ACCESS_READ))


def beginning(path: Path, size: int) -> bytes:
    """Return a file's first bytes.

    Raises:
        OSError: it cannot be opened or read, or is no regular file.
    """
    with _opened(path) as (file, _):
        return os.pread(file, size, 0)


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[tuple[int, int]]:
    """Yield the descriptor and the size of a regular file."""
    # Opening a pipe without a writer would block.
    file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EISDIR, "it is no regular file", str(path))
        yield file, status.st_size
    finally:
        os.close(file)


def scan(segment: str, data: memoryview) -> Iterator[Record | Damage]:
    """Yield the records and gaps of a segment, in order and without overlap."""
    marker = marker_of(segment)
    offset = 0
    while offset < len(data):
        record = read_record(data, offset, marker)
        if record is not None:
            yield record
            offset += record.size
            continue
        after = _next_record(data, offset + 1, marker)
        torn = after == len(data) and may_be_torn(data, offset, marker)
        yield Damage(segment, offset, after - offset, torn)
        offset = after


def _next_record(data: memoryview, offset: int, marker: bytes) -> int:
    """Return the offset of the next whole record, or the end."""
    searched = cast("mmap.mmap", data.obj)
    found = offset - 1
    while (found := searched.find(marker, found + 1)) != -1:
        start = record_start(data, found, marker)
        if start >= offset and read_record(data, start, marker) is not None:
            return start
    return len(data)


def _is_readable(file: int, size: int) -> bool:
    """Return whether the disk can read all of it: in a mapping a bad block would end the process."""
    portion = bytearray(min(_PORTION, size))
    try:
        for offset in range(0, size, len(portion)):
            os.preadv(file, [portion], offset)
    except OSError:
        return False
    return True


def _salvaged(file: int, size: int) -> memoryview:
    data = memoryview(mmap.mmap(-1, size))
    for offset in range(0, size, _BLOCK):
        try:
            os.preadv(file, [data[offset : offset + _BLOCK]], offset)
        except OSError:
            continue
    return data
