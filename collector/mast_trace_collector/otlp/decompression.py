"""Decompresses request bodies within limits of size and time: a few kilobytes can hold gigabytes."""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import zstandard

from mast_trace_collector.otlp.errors import (
    RequestError,
    TooLarge,
    UnsupportedMediaType,
)

DEFAULT_SECONDS = 10.0
_GZIP = 16 + zlib.MAX_WBITS
_ZLIB = zlib.MAX_WBITS
_RAW = -zlib.MAX_WBITS
_ZSTD_WINDOW = 8 << 20  # the minimum that RFC 8878 requires of every decoder
# One zstd block of 4 bytes can hold 128 KiB, so a slice this small holds at most 32 MiB.
_ZSTD_SLICE = 1024
_ZSTD_WHOLE = 1 << 20  # below it a body is decompressed by one call, which cannot be interrupted
_ZLIB_SLICE = 16 * 1024
# Block-wise writers of gzip (bgzip) end a member after 64 KiB.
_MEMBERS = 10_000


def decompress(body: bytes, encoding: str, limit: int, seconds: float = DEFAULT_SECONDS) -> bytes:
    """Undo a content encoding.

    Args:
        body: the compressed body.
        encoding: the name of the content encoding; empty for none.
        limit: bytes of the decompressed content.
        seconds: limit of CPU time.

    Raises:
        TooLarge: the content is larger than the limit, or takes too long.
        UnsupportedMediaType: the encoding is not known.
        RequestError: the body is not whole, or not of this encoding.
    """
    try:
        if encoding in {"", "identity"}:
            data = body
        elif encoding in {"gzip", "x-gzip"}:
            data = _inflate(body, _GZIP, limit, seconds)
        elif encoding == "deflate":
            # The standard means the zlib format, but some senders leave its header out.
            zlib_header = (
                len(body) > 1 and body[0] & 0x0F == 8 and (body[0] << 8 | body[1]) % 31 == 0
            )
            data = _inflate(body, _ZLIB if zlib_header else _RAW, limit, seconds)
        elif encoding == "zstd":
            data = _unzstd(body, limit, seconds)
        else:
            raise UnsupportedMediaType(
                f"content encoding {encoding[:40]!r} is not supported; use gzip, deflate or zstd"
            )
    except (zlib.error, zstandard.ZstdError) as error:
        raise RequestError(f"the body is no valid {encoding}: {error}") from error
    if len(data) > limit:
        raise _too_large(limit)
    return data


def _too_large(limit: int) -> TooLarge:
    return TooLarge(f"the request has more than {limit} bytes decompressed")


def _inflate(body: bytes, window: int, limit: int, seconds: float) -> bytes:
    members = _MEMBERS if window == _GZIP else 1
    return _joined(
        body,
        lambda: zlib.decompressobj(window),
        lambda stream, piece, room: stream.decompress(piece, room),
        _Bounds(limit, seconds, members, _ZLIB_SLICE),
    )


def _unzstd(body: bytes, limit: int, seconds: float) -> bytes:
    decompressor = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW)
    declared = zstandard.frame_content_size(body)
    if declared > limit:
        raise _too_large(limit)
    if declared > 0 and len(body) < _ZSTD_WHOLE:
        return decompressor.decompress(body, allow_extra_data=False)
    return _joined(
        body,
        decompressor.decompressobj,
        lambda stream, piece, _: stream.decompress(piece),
        _Bounds(limit, seconds, _MEMBERS, _ZSTD_SLICE),
    )


@dataclass(frozen=True)
class _Bounds:
    limit: int
    seconds: float
    members: int
    slice: int


def _joined(
    body: bytes,
    new: Callable[[], Any],
    feed: Callable[[Any, memoryview, int], bytes],
    bounds: _Bounds,
) -> bytes:
    """Decompress one member after the other.

    The body is fed in slices: a decompressor copies everything after the end of its member, so that
    for a whole body the time would grow with the square of the number of members.
    """
    until = time.thread_time() + bounds.seconds
    rest = memoryview(body)
    parts = []
    room = bounds.limit
    members = 0
    stream = None
    while rest:
        stream = stream or new()
        piece = rest[: bounds.slice]
        part = feed(stream, piece, room + 1)
        room -= len(part)
        if room < 0:
            raise _too_large(bounds.limit)
        if time.thread_time() > until:
            raise TooLarge(f"the request takes more than {bounds.seconds:g} s to decompress")
        parts.append(part)
        rest = rest[len(piece) - len(stream.unused_data) :]
        if stream.eof:
            stream = None
            members += 1
            if members == bounds.members:
                break
    if stream is not None:
        raise RequestError("the compressed body is not whole")
    if rest and bounds.members > 1:
        raise TooLarge(f"the request has more than {bounds.members} compressed members")
    return b"".join(parts)
