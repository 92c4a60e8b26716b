"""The receipt of a segment: how much of it was acknowledged, in a file of its own.

What a crash may leave unfinished stands beyond that; what is missing before it was damaged
afterwards. The receipt is written, not synced, after each synced group: a process that is killed
leaves it exact, and a machine that loses power at worst one that says less than was acknowledged.
"""

from __future__ import annotations

import os
import struct
from dataclasses import astuple, dataclass
from typing import TYPE_CHECKING

import xxhash

from mast_trace_collector.spool.record import marker_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

RECEIPT = ".acked"
_FIELDS = struct.Struct("<8sQQQ16s")
_DIGEST_BYTES = 16
_SIZE = _FIELDS.size + _DIGEST_BYTES


@dataclass(frozen=True)
class Receipt:
    """What of a segment was acknowledged, at least.

    Attributes:
        size: bytes from its beginning.
        records: requests.
        items: spans in them.
        chain: digest of the requests' digests, in order.
    """

    size: int
    records: int
    items: int
    chain: bytes

    def covers(self, digests: Sequence[bytes]) -> bool:
        """Return whether requests of these digests begin with those acknowledged, in order."""
        return chain(digests[: self.records]).digest() == self.chain

    def packed(self, segment: str) -> bytes:
        """Return the file's content."""
        fields = _FIELDS.pack(marker_of(segment), *astuple(self))
        return fields + xxhash.xxh3_128_digest(fields)


def chain(digests: Iterable[bytes] = ()) -> xxhash.xxh3_128:
    """Return what `Receipt.chain` is the digest of; more can be added."""
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
        """Replace what the receipt says.

        Raises:
            OSError: it could not be written.
        """
        os.pwrite(self._file, receipt.packed(self._path.stem), 0)

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)


def receipt_path(segment: Path) -> Path:
    """Return where the receipt of a segment is."""
    return segment.with_suffix(RECEIPT)


def read_receipt(path: Path) -> Receipt | None:
    """Return what a receipt says; None where there is none that can be believed.

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
