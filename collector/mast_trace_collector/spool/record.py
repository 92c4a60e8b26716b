"""One request in a spool segment: a header with a digest, then the request's bytes.

The digest has two purposes: it distinguishes a whole record from a torn or damaged one, and it is
the request's identity, by which a repeated request is recognised.

The bytes around both make a segment a stream of length-delimited Protobuf messages, which
ClickHouse parses without Python: to it the header is a field that OTLP does not have, and the end
is the field with the project (``schema/otlp.proto``), which comes last and so overrides the
sender's.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar, cast

import xxhash

if TYPE_CHECKING:
    import mmap

DIGEST_BYTES = 16
MARKER_BYTES = 8
_HEADER = struct.Struct("<8sII16s")
_HEADER_FIELD = b"\xca\x3e" + bytes([_HEADER.size])
"""Field 1001, length-delimited."""
_LENGTH_BYTES = 5
_FRAME_BYTES = _LENGTH_BYTES + len(_HEADER_FIELD)
_END = b"\xc2\x3e\x01\0"
"""Field 1000, ``mast_project``: a NUL, which keeps the project of the request."""


@dataclass(frozen=True)
class Record:
    """A request as the spool keeps it.

    Attributes:
        payload: the serialised export request.
        items: number of spans (or log records) in it.
        digest: 128-bit hash of both.
        framed: whether it is a Protobuf message; in segments of the first version it was not.
        offset: its position in its segment, independent of other records.
    """

    OVERHEAD: ClassVar[int] = _FRAME_BYTES + _HEADER.size + len(_END)
    """Bytes that a framed record takes besides its payload."""

    payload: bytes | memoryview
    items: int
    digest: bytes
    framed: bool = True
    offset: int = field(default=0, compare=False)

    @classmethod
    def of(cls, payload: bytes, items: int) -> Record:
        """Make the record of a request."""
        return cls(payload, items, _digest(payload, items))

    def before(self, marker: bytes) -> bytes:
        """The bytes before the payload in a segment with this marker."""
        length = _varint(self.size - _LENGTH_BYTES)
        header = _HEADER.pack(marker, len(self.payload), self.items, self.digest)
        return length + _HEADER_FIELD + header

    def parts(self, marker: bytes) -> tuple[bytes, bytes | memoryview, bytes]:
        """The parts of the record in a segment with this marker, in order."""
        return self.before(marker), self.payload, _END

    def is_message(self, data: memoryview, marker: bytes) -> bool:
        """Return whether the record at the beginning of ``data`` is a whole Protobuf message."""
        before = self.before(marker)
        end = data[self.size - len(_END) : self.size]
        return self.framed and data[: len(before)] == before and end == _END

    @property
    def size(self) -> int:
        """Bytes that the record takes in a segment."""
        around = self.OVERHEAD if self.framed else _HEADER.size
        return around + len(self.payload)


def marker_of(segment: str) -> bytes:
    """The eight bytes that mark each record of the segment with this name.

    Segment names are random, so no sender can put the marker into a payload and have its bytes
    taken for a record when a damaged segment is searched.
    """
    return xxhash.xxh64_digest(segment.encode())


def read_record(data: memoryview, offset: int, marker: bytes) -> Record | None:
    """Read the record at an offset; None if there is no whole and undamaged record.

    Nothing is copied: the payload is a part of ``data``.
    """
    framed = data[offset : offset + len(marker)] != marker
    start = offset + (_FRAME_BYTES if framed else 0)
    if start + _HEADER.size > len(data):
        return None
    found, length, items, digest = _HEADER.unpack_from(data, start)
    start += _HEADER.size
    record = Record(data[start : start + length], items, digest, framed, offset)
    whole = found == marker and offset + record.size <= len(data) and len(record.payload) == length
    return record if whole and digest == _digest(record.payload, items) else None


def may_be_torn(data: memoryview, offset: int, marker: bytes) -> bool:
    """Return whether all bytes from an offset on can be a record whose end was never written.

    A killed process leaves the beginning of the record that it was writing, and nothing else.
    """
    rest = bytes(data[offset : offset + _FRAME_BYTES + _HEADER.size])
    framed = not rest.startswith(marker[: len(rest)])
    if framed and not _may_begin_frame(rest[:_FRAME_BYTES]):
        return False
    header = rest[_FRAME_BYTES:] if framed else rest
    if not header.startswith(marker[: len(header)]):
        return False
    if len(header) < _HEADER.size:
        return True
    length = _HEADER.unpack_from(header)[1]
    left = len(data) - offset
    around = Record.OVERHEAD if framed else _HEADER.size
    if around + length <= left:
        return False
    return not framed or rest[:_LENGTH_BYTES] == _varint(around + length - _LENGTH_BYTES)


def _may_begin_frame(rest: bytes) -> bool:
    length, field = rest[:_LENGTH_BYTES], rest[_LENGTH_BYTES:]
    continued = [bool(byte & 0x80) for byte in length]
    expected = [True] * (_LENGTH_BYTES - 1) + [False]
    return continued == expected[: len(length)] and _HEADER_FIELD.startswith(field)


def claimed_items(data: memoryview, begin: int, end: int, marker: bytes) -> int:
    """Return the number of spans by the headers that are left between two offsets.

    It is an estimate for damaged records, bounded by the number that fits there.
    """
    area = bytes(data[begin:end])
    total = 0
    at = -1
    while (at := area.find(marker, at + 1)) != -1:
        if at + _HEADER.size <= len(area):
            total += _HEADER.unpack_from(area, at)[2]
    return min(total, len(area))


def owner(data: memoryview, names: Mapping[bytes, str]) -> str | None:
    """Return the name of the segment whose records these are.

    Args:
        data: a file's content.
        names: of present and former segments, by their `marker_of`.
    """
    first = names.get(bytes(data[:MARKER_BYTES]))
    if first is not None:
        return first
    searched = cast("mmap.mmap", data.obj)
    at = -1
    while (at := searched.find(_HEADER_FIELD, at + 1)) != -1:
        start = at + len(_HEADER_FIELD)
        found = names.get(bytes(data[start : start + MARKER_BYTES]))
        if found is not None:
            return found
    return None


def record_start(data: memoryview, marker_at: int, marker: bytes) -> int:
    """Return the offset of a record whose marker is found at another: before it, if it has a frame."""
    start = marker_at - _FRAME_BYTES
    bare = read_record(data, marker_at, marker)
    if bare is None or start < 0:
        return marker_at
    frame = replace(bare, framed=True).before(marker)[:_FRAME_BYTES]
    return start if data[start:marker_at] == frame else marker_at


def _varint(number: int) -> bytes:
    """A number below 2^35 in Protobuf's encoding, always in five bytes."""
    return bytes(number >> shift & 0x7F | (0x80 if shift < 28 else 0) for shift in range(0, 35, 7))


def _digest(payload: bytes | memoryview, items: int) -> bytes:
    return xxhash.xxh3_128_digest(payload, seed=items)
