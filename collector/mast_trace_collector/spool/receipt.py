"""The receipt of a segment: a file that records how much of the segment was acknowledged.

Bytes beyond it may be an unfinished write; bytes missing before it were damaged afterwards. The
receipt is written, not synced, after each synced group: it is exact after a process was killed, and
after a power failure it covers at worst less than was acknowledged.
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
