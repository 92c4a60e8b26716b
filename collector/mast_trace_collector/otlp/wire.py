"""Protobuf's wire format: fields of a message without a parser, which also reads damaged ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5


def fields(data: bytes) -> Iterator[tuple[int, int, int, int]]:
    """Yield the fields of a message: where each begins, its tag, where its content begins and ends.

    Raises:
        ValueError: from here on the bytes are no fields.
    """
    position, end = 0, len(data)
    while position < end:
        begin = position
        tag, position = varint(data, position)
        kind = tag & 7
        if kind == BYTES:
            size, position = varint(data, position)
            content, position = position, position + size
        elif kind in {VARINT, FIXED64, FIXED32}:
            content, position = position, after(data, position, kind)
        else:
            raise ValueError("a field has no known type")
        if position > end:
            raise ValueError("a field is longer than its message")
        yield begin, tag, content, position


def after(data: bytes, position: int, kind: int) -> int:
    """Return the offset after a number; the marks of a group consist of tags alone."""
    if kind == VARINT:
        return varint(data, position)[1]
    return position + {FIXED64: 8, FIXED32: 4}.get(kind, 0)


def varint(data: bytes, position: int) -> tuple[int, int]:
    """Read a number and the offset after it; a number cut off by the data's end ends there."""
    if position < len(data) and data[position] < 0x80:
        return data[position], position + 1
    value = shift = 0
    for byte in data[position : position + 10]:
        position += 1
        if byte < 0x80:
            return value | byte << shift, position
        value |= (byte & 0x7F) << shift
        shift += 7
    return value, len(data)


def encoded(number: int) -> bytes:
    """Return a number, such as a length, as `varint` reads it."""
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)
