"""One request in a spool segment: a header with a digest, then the request's bytes.

The digest does two jobs: it tells a whole record from a torn or damaged one, and it is the
request's identity, by which a request that is sent again is recognised.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

import xxhash

if TYPE_CHECKING:
    from mmap import mmap

DIGEST_BYTES = 16
_HEADER = struct.Struct("<8sII16s")


@dataclass(frozen=True)
class Record:
    """A request as it is kept.

    Attributes:
        payload: the serialised export request.
        items: how many spans (or log records) it holds.
        digest: 128-bit hash of both.
    """

    payload: bytes
    items: int
    digest: bytes

    @classmethod
    def of(cls, payload: bytes, items: int) -> Record:
        """Make the record of a request."""
        return cls(payload, items, _digest(payload, items))

    def header(self, marker: bytes) -> bytes:
        """What stands before the payload in a segment of this marker."""
        return _HEADER.pack(marker, len(self.payload), self.items, self.digest)

    @property
    def size(self) -> int:
        """Bytes that the record takes in a segment."""
        return _HEADER.size + len(self.payload)


def marker_of(segment: str) -> bytes:
    """The eight bytes that begin each record of the segment of this name.

    Segment names are random, so no sender can put the marker into a payload and have its bytes
    taken for a record when a damaged segment is searched.
    """
    return xxhash.xxh64_digest(segment.encode())


def read_record(data: mmap | bytes, offset: int, marker: bytes) -> Record | None:
    """Read the record at an offset; None when no whole and undamaged record stands there."""
    if offset + _HEADER.size > len(data):
        return None
    found, length, items, digest = _HEADER.unpack_from(data, offset)
    start = offset + _HEADER.size
    if found != marker or start + length > len(data):
        return None
    payload = bytes(data[start : start + length])
    return Record(payload, items, digest) if _digest(payload, items) == digest else None


def _digest(payload: bytes, items: int) -> bytes:
    return xxhash.xxh3_128_digest(payload, seed=items)
