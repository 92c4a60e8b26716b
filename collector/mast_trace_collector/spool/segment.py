"""Spool segments: files that grow record by record and never change once closed."""

from __future__ import annotations

import contextlib
import mmap
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from mast_trace_collector.spool.record import Record, marker_of, read_record, record_start

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

LOG = ".log"
_MAX_IOVECS = 1024  # IOV_MAX on Linux and macOS
_PORTION = 1024 * 1024
"""Bytes written at a time. For more of them Linux takes its pages in larger blocks, which on a
virtual machine come from the host each time: the same bytes cost up to four times as much CPU."""


@dataclass(frozen=True)
class Damage:
    """Bytes of a segment that hold no readable record.

    Attributes:
        segment: the segment's name.
        offset: where they begin.
        data: what stands there.
        torn: they end the segment, as a crash in the middle of a write leaves it. Such bytes
            were never acknowledged.
    """

    segment: str
    offset: int
    data: bytes
    torn: bool


@dataclass(frozen=True)
class Segment:
    """A closed segment.

    Attributes:
        path: its file; the name without suffix is the deduplication token of its rows.
        size: bytes up to the end of the last whole record.
        items: spans in it.
        digests: identities of its requests, in order.
        created: time of its first record, in seconds since the epoch.
    """

    path: Path
    size: int
    items: int
    digests: tuple[bytes, ...] = field(repr=False)
    created: float

    @property
    def name(self) -> str:
        """Unique for ever, also across spools that write into one database."""
        return self.path.stem

    @property
    def payload_bytes(self) -> int:
        """Bytes of the requests themselves, if the segment is `intact`."""
        return self.size - len(self.digests) * Record.OVERHEAD

    def read(self) -> list[Record]:
        """The whole records, in the order of their arrival."""
        data = _mapped(self.path, self.size)
        return [found for found in _scan(self.name, data) if isinstance(found, Record)]

    def intact(self) -> bool:
        """Whether the file is a stream of messages, as it was written, so that others can read it."""
        if self.path.stat().st_size != self.size:
            return False
        data = _mapped(self.path, self.size)
        marker = marker_of(self.name)
        offset = 0
        for found in _scan(self.name, data):
            if isinstance(found, Damage) or not found.is_message(data[offset:], marker):
                return False
            offset += found.size
        return True


class SegmentWriter:
    """The segment that requests are being appended to.

    Raises:
        OSError: the file cannot be created; nothing is left behind.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.size = 0
        self.items = 0
        self.digests: list[bytes] = []
        self._marker = marker_of(path.stem)
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            sync_directory(path.parent)
        except OSError:
            os.close(self._file)
            path.unlink()
            raise

    def append(self, records: Sequence[Record]) -> None:
        """Write records and make them durable.

        Raises:
            OSError: nothing of them counts: the segment ends where it ended before.
        """
        buffers = [part for record in records for part in record.parts(self._marker)]
        try:
            self._write(buffers)
            _sync(self._file)
        except OSError:
            # Should even this fail, the size below still bounds what a reader takes.
            with contextlib.suppress(OSError):
                os.ftruncate(self._file, self.size)
                os.lseek(self._file, self.size, os.SEEK_SET)
            raise
        self.size += sum(record.size for record in records)
        self.items += sum(record.items for record in records)
        self.digests.extend(record.digest for record in records)

    def _write(self, buffers: Sequence[bytes | memoryview]) -> None:
        for views in _portions(buffers):
            while views:
                written = os.writev(self._file, views)
                while views and written >= len(views[0]):
                    written -= len(views.pop(0))
                if written:
                    views[0] = views[0][written:]

    def close(self, created: float) -> Segment:
        """End the segment."""
        os.close(self._file)
        return Segment(self.path, self.size, self.items, tuple(self.digests), created)


def _portions(buffers: Sequence[bytes | memoryview]) -> Iterator[list[memoryview]]:
    """Yield what is written at a time."""
    portion: list[memoryview] = []
    size = 0
    for buffer in buffers:
        for start in range(0, len(buffer), _PORTION):
            view = memoryview(buffer)[start : start + _PORTION]
            if portion and (size + len(view) > _PORTION or len(portion) == _MAX_IOVECS):
                yield portion
                portion, size = [], 0
            portion.append(view)
            size += len(view)
    yield portion


def recover(path: Path) -> tuple[Segment, list[Damage]]:
    """Take up a segment that an earlier process left.

    A torn tail is cut off. Bytes damaged in the middle stay in the file and are reported; the
    whole records around them are kept.
    """
    digests: list[bytes] = []
    damages: list[Damage] = []
    items = end = 0
    for found in _scan(path.stem, _mapped(path, path.stat().st_size)):
        if isinstance(found, Damage):
            damages.append(found)
            end += 0 if found.torn else len(found.data)
        else:
            digests.append(found.digest)
            items += found.items
            end += found.size
    if damages and damages[-1].torn:
        os.truncate(path, end)
    return Segment(path, end, items, tuple(digests), path.stat().st_mtime), damages


def _mapped(path: Path, size: int) -> memoryview:
    """The first bytes of a file, in memory for as long as something points to them."""
    if size == 0:
        return memoryview(b"")
    with path.open("rb") as file:
        return memoryview(mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ))


def _scan(segment: str, data: memoryview) -> Iterator[Record | Damage]:
    marker = marker_of(segment)
    offset = 0
    while offset < len(data):
        record = read_record(data, offset, marker)
        if record is not None:
            yield record
            offset += record.size
            continue
        after = _next_record(data, offset + 1, marker)
        yield Damage(segment, offset, bytes(data[offset:after]), torn=after == len(data))
        offset = after


def _next_record(data: memoryview, offset: int, marker: bytes) -> int:
    """Where the next whole record begins, or the end."""
    searched = cast("mmap.mmap", data.obj)
    found = offset - 1
    while (found := searched.find(marker, found + 1)) != -1:
        start = record_start(data, found, marker)
        if start >= offset and read_record(data, start, marker) is not None:
            return start
    return len(data)


def sync_directory(path: Path) -> None:
    """Make the names in a folder durable."""
    directory = os.open(path, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def _sync(file: int) -> None:
    if hasattr(os, "fdatasync"):
        os.fdatasync(file)
    else:
        # macOS: its fsync leaves the data in the drive's cache.
        import fcntl

        fcntl.fcntl(file, getattr(fcntl, "F_FULLFSYNC", 0))
