"""Spool segments: files that grow record by record and never change once closed.

The receipt of a segment: a file that records how much of the segment was acknowledged.

Bytes beyond it may be an unfinished write; bytes missing before it were damaged afterwards. The
receipt is written, not synced, after each synced group: it is exact after a process was killed, and
after a power failure it covers at worst less than was acknowledged.
"""

from __future__ import annotations

import contextlib
import logging
import os
import struct
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass, field
from pathlib import Path

import xxhash

from mast_trace_collector.spool.reading import Damage, content, scan
from mast_trace_collector.spool.record import Record, marker_of

RECEIPT = ".acked"
_FIELDS = struct.Struct("<8sQQQ16s")
_DIGEST_BYTES = 16
_SIZE = _FIELDS.size + _DIGEST_BYTES

logger = logging.getLogger(__name__)
LOG = ".log"
_MAX_IOVECS = 1024  # IOV_MAX on Linux and macOS
_PORTION = 1024 * 1024
"""Bytes written at a time. For larger writes Linux allocates its pages in larger blocks, which on a
virtual machine come from the host each time: the same bytes cost up to four times as much CPU.
"""


@dataclass(frozen=True)
class Receipt:
    """The acknowledged part of a segment, at least.

    Attributes:
        size: number of bytes from its beginning.
        records: number of requests.
        items: number of spans in them.
        chain: digest of the requests' digests, in order.
    """

    size: int
    records: int
    items: int
    chain: bytes

    def covers(self, digests: Sequence[bytes]) -> bool:
        """Return whether requests of these digests begin with the acknowledged ones, in order."""
        return chain(digests[: self.records]).digest() == self.chain

    def packed(self, segment: str) -> bytes:
        """Return the file's content."""
        fields = _FIELDS.pack(marker_of(segment), *astuple(self))
        return fields + xxhash.xxh3_128_digest(fields)


def chain(digests: Iterable[bytes] = ()) -> xxhash.xxh3_128:
    """Return a hash of requests so far, which `Receipt.chain` is the digest of; more can be added."""
    found = xxhash.xxh3_128()
    for digest in digests:
        found.update(digest)
    return found


class ReceiptWriter:
    """The receipt of the segment that is being written.

    Raises:
        OSError: the file cannot be created.
    """

    def __init__(self, segment: Path) -> None:
        self._path = receipt_path(segment)
        self._file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)

    def write(self, receipt: Receipt) -> None:
        """Replace the content of the receipt.

        Raises:
            OSError: it could not be written.
        """
        os.pwrite(self._file, receipt.packed(self._path.stem), 0)

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)


def receipt_path(segment: Path) -> Path:
    """Return the path of a segment's receipt."""
    return segment.with_suffix(RECEIPT)


def read_receipt(path: Path) -> Receipt | None:
    """Return the content of a receipt; None where there is no valid one.

    A segment of an earlier version has none, and a machine that lost power may leave it empty.
    """
    try:
        data = path.read_bytes()
    except OSError:
        return None
    if len(data) != _SIZE or xxhash.xxh3_128_digest(data[: _FIELDS.size]) != data[_FIELDS.size :]:
        return None
    marker, *values = _FIELDS.unpack_from(data)
    return Receipt(*values) if marker == marker_of(path.stem) else None


@dataclass(frozen=True)
class Segment:
    """A closed segment.

    Attributes:
        path: its file; the name without suffix is the deduplication token of its rows.
        size: acknowledged bytes, even where fewer are left.
        items: number of spans in it.
        digests: of its requests, in order.
        created: time of its first record, in seconds since the epoch.
    """

    path: Path
    size: int
    items: int
    digests: tuple[bytes, ...] = field(repr=False)
    created: float

    @property
    def name(self) -> str:
        """A name that is unique for ever, also across spools that write into one database."""
        return self.path.stem

    def read(self) -> tuple[list[Record], tuple[Damage, ...]]:
        """Return its requests, in the order of their arrival, and its unreadable ranges.

        Raises:
            OSError: the file cannot be read at all.
        """
        # Bytes may have been copied over others: each record counts at most as often as it was
        # written.
        expected = Counter(self.digests)
        records: list[Record] = []
        damages: list[Damage] = []
        for found in scan(self.name, content(self.path)):
            if isinstance(found, Damage):
                damages.append(found)
            elif expected[found.digest]:
                expected[found.digest] -= 1
                records.append(found)
        return records, tuple(damages)

    def intact(self) -> bool:
        """Return whether the file is an intact stream of messages, so that others can parse it."""
        try:
            data = content(self.path)
        except OSError:
            return False
        marker = marker_of(self.name)
        digests = []
        offset = 0
        for found in scan(self.name, data):
            if isinstance(found, Damage) or not found.is_message(data[offset:], marker):
                return False
            offset += found.size
            digests.append(found.digest)
        return offset == self.size and tuple(digests) == self.digests


class SegmentWriter:
    """The segment that requests are being appended to.

    Raises:
        OSError: the file cannot be created; nothing is left behind.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.digests: list[bytes] = []
        self._marker = marker_of(path.stem)
        self._chain = chain()
        self._acknowledged = Receipt(0, 0, 0, self._chain.digest())
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            self._receipt = ReceiptWriter(path)
        except OSError:
            os.close(self._file)
            path.unlink()
            raise
        try:
            self._receipt.write(self._acknowledged)
            sync_directory(path.parent)
        except OSError:
            self._close_files()
            self.remove()
            raise

    def append(self, records: Sequence[Record]) -> None:
        """Write records and make them durable.

        Raises:
            OSError: none of them counts: the segment ends where it ended before.
        """
        buffers = [part for record in records for part in record.parts(self._marker)]
        after, chained = self._after(records)
        try:
            self._write(buffers)
            _sync(self._file)
            self._receipt.write(after)
        except OSError:
            # Even if this fails, the size below limits the bytes that a reader takes.
            with contextlib.suppress(OSError):
                os.ftruncate(self._file, self.size)
                os.lseek(self._file, self.size, os.SEEK_SET)
                self._receipt.write(self._acknowledged)
            raise
        self._acknowledged, self._chain = after, chained
        self.digests.extend(record.digest for record in records)

    def _after(self, records: Sequence[Record]) -> tuple[Receipt, xxhash.xxh3_128]:
        """Return the receipt extended by more requests."""
        now = self._acknowledged
        chained = self._chain.copy()
        for record in records:
            chained.update(record.digest)
        return Receipt(
            now.size + sum(record.size for record in records),
            now.records + len(records),
            now.items + sum(record.items for record in records),
            chained.digest(),
        ), chained

    @property
    def size(self) -> int:
        """Bytes that were acknowledged."""
        return self._acknowledged.size

    @property
    def items(self) -> int:
        """Spans in them."""
        return self._acknowledged.items

    def _write(self, buffers: Sequence[bytes | memoryview]) -> None:
        for views in _portions(buffers):
            while views:
                written = os.writev(self._file, views)
                while views and written >= len(views[0]):
                    written -= len(views.pop(0))
                if written:
                    views[0] = views[0][written:]

    def close(self, created: float) -> Segment:
        """Close the segment."""
        if self.size and os.fstat(self._file).st_nlink == 0:
            self._write_anew()
        self._close_files()
        return Segment(self.path, self.size, self.items, tuple(self.digests), created)

    def remove(self) -> None:
        """Delete the segment, which is closed and empty."""
        self.path.unlink(missing_ok=True)
        receipt_path(self.path).unlink(missing_ok=True)

    def _close_files(self) -> None:
        os.close(self._file)
        self._receipt.close()

    def _write_anew(self) -> None:
        """Restore a deleted file, while it is still open here."""
        logger.error("segment %s was deleted while it was written: it is written anew", self.path)
        try:
            with self.path.open("xb") as file:
                for offset in range(0, self.size, _PORTION):
                    file.write(os.pread(self._file, min(_PORTION, self.size - offset), offset))
                file.flush()
                os.fsync(file.fileno())
            sync_directory(self.path.parent)
        except OSError as error:
            logger.error("segment %s cannot be written anew: %s", self.path, error)  # noqa: TRY400


def _portions(buffers: Sequence[bytes | memoryview]) -> Iterator[list[memoryview]]:
    """Yield the bytes in pieces of one write."""
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


def sync_directory(path: Path) -> None:
    """Make the names in a folder durable."""
    directory = os.open(path, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def make_folder(path: Path) -> None:
    """Make a folder with its parents, and their names durable; nothing if it is there."""
    missing = [each for each in (path, *path.parents) if not each.exists()]
    path.mkdir(parents=True, exist_ok=True, mode=0o700)
    for each in missing:
        sync_directory(each.parent)


def _sync(file: int) -> None:
    if hasattr(os, "fdatasync"):
        os.fdatasync(file)
    else:
        # macOS: its fsync leaves the data in the drive's cache.
        import fcntl

        fcntl.fcntl(file, getattr(fcntl, "F_FULLFSYNC", 0))
