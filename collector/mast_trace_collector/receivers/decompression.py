"""Decompresses request bodies, never beyond a limit: a few kilobytes can hold gigabytes."""

from __future__ import annotations

import zlib

import zstandard

from mast_trace_collector.receivers.request_error import (
    RequestError,
    TooLarge,
    UnsupportedMediaType,
)

_GZIP = 16 + zlib.MAX_WBITS
_ZLIB = zlib.MAX_WBITS
_RAW = -zlib.MAX_WBITS
_ZSTD_WINDOW = 8 << 20  # what RFC 8878 asks of every decoder
# One zstd block of 4 bytes can hold 128 KiB, so a slice this small holds at most 32 MiB.
_ZSTD_SLICE = 1024


def decompress(body: bytes, encoding: str, limit: int) -> bytes:
    """Undo a content encoding.

    Raises:
        TooLarge: the content is larger than the limit.
        UnsupportedMediaType: the encoding is not known.
        RequestError: the body is not whole, or not of this encoding.
    """
    try:
        if encoding in {"", "identity"}:
            data = body
        elif encoding in {"gzip", "x-gzip"}:
            data = _inflate(body, _GZIP, limit)
        elif encoding == "deflate":
            # The standard means the zlib format, but some senders leave its header out.
            zlib_header = (
                len(body) > 1 and body[0] & 0x0F == 8 and (body[0] << 8 | body[1]) % 31 == 0
            )
            data = _inflate(body, _ZLIB if zlib_header else _RAW, limit)
        elif encoding == "zstd":
            data = _unzstd(body, limit)
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


def _inflate(body: bytes, window: int, limit: int) -> bytes:
    parts = []
    room = limit
    rest = body
    while rest:
        stream = zlib.decompressobj(window)
        part = stream.decompress(rest, room + 1)
        room -= len(part)
        if room < 0:
            raise _too_large(limit)
        if not stream.eof:
            raise RequestError("the compressed body is not whole")
        parts.append(part)
        rest = stream.unused_data if window == _GZIP else b""
    return b"".join(parts)


def _unzstd(body: bytes, limit: int) -> bytes:
    decompressor = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW)
    declared = zstandard.frame_content_size(body)
    if declared > limit:
        raise _too_large(limit)
    if declared > 0:
        return decompressor.decompress(body, allow_extra_data=False)
    stream = decompressor.decompressobj()
    parts = []
    size = 0
    for start in range(0, len(body), _ZSTD_SLICE):
        parts.append(stream.decompress(body[start : start + _ZSTD_SLICE]))
        size += len(parts[-1])
        if size > limit:
            raise _too_large(limit)
        if stream.eof:
            break
    if not stream.eof:
        raise RequestError("the compressed body is not whole")
    return b"".join(parts)
