"""Content encodings of requests and results, and ClickHouse's own compression.

JDBC drivers ask for the latter by ``compress=1`` and ``decompress=1``. A body is a row of blocks, each compressed for itself: 16 bytes of CityHash128 (version 1.0.2) over
what follows, the higher half first; one byte that names the method; the size of the block without its
checksum and its size decompressed, four bytes each, the lowest first; the compressed bytes.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator

import zstandard

from mast_trace_collector.clickhouse_http.errors import BAD_ARGUMENTS, TOO_LARGE, QueryError
from mast_trace_collector.otlp import decompression
from mast_trace_collector.otlp.errors import RequestError, TooLarge

_CHECKSUM = struct.Struct("<QQ")
_HEADER = struct.Struct("<BII")
_NONE, _LZ4, _ZSTD = 0x02, 0x82, 0x90
_NAMES = {_NONE: "none", _LZ4: "LZ4", _ZSTD: "ZSTD"}
_BLOCK = 1024 * 1024
"""Bytes of a block decompressed: a server's own ``max_compress_block_size``."""
_CHECKSUM_DOES_NOT_MATCH = 40
_CANNOT_DECOMPRESS = 271
_UNKNOWN_METHOD = 89

_SMALL = 1024


def pack(data: bytes) -> bytes:
    """Return a body in blocks of LZ4, which every client reads; an empty one stays empty."""
    return b"".join(_packed(data))


def unpack(body: bytes, limit: int) -> bytes:
    """Return the content of a body of blocks.

    Each byte is looked at once, and nothing is decompressed beyond the limit.

    Raises:
        QueryError: it is no row of whole blocks of a known method, or holds more than ``limit``
            bytes.
    """
    parts: list[bytes] = []
    left = limit
    offset = 0
    while offset < len(body):
        data, offset = _unpacked(memoryview(body), offset, left)
        parts.append(data)
        left -= len(data)
    return b"".join(parts)


def _packed(data: bytes) -> Iterator[bytes]:
    import lz4.block  # type: ignore[import-untyped]

    for start in range(0, len(data), _BLOCK):
        plain = data[start : start + _BLOCK]
        packed = lz4.block.compress(plain, store_size=False)
        block = _HEADER.pack(_LZ4, _HEADER.size + len(packed), len(plain)) + packed
        yield _checksum(block)
        yield block


def _unpacked(body: memoryview, offset: int, limit: int) -> tuple[bytes, int]:
    """Return a block's data, and where the next one begins."""
    start = offset + _CHECKSUM.size
    if start + _HEADER.size > len(body):
        raise _broken(offset, "it is cut off")
    method, size, plain_size = _HEADER.unpack_from(body, start)
    if size < _HEADER.size or start + size > len(body):
        raise _broken(offset, "it is cut off")
    if plain_size > limit:
        raise QueryError(TOO_LARGE, "the request has too many bytes decompressed", "TOO_MANY_BYTES")
    block = bytes(body[start : start + size])
    if _checksum(block) != body[offset:start]:
        raise QueryError(
            _CHECKSUM_DOES_NOT_MATCH,
            f"the checksum of the compressed block at byte {offset} does not match",
            "CHECKSUM_DOESNT_MATCH",
        )
    if method not in _NAMES:
        raise QueryError(
            _UNKNOWN_METHOD,
            f"blocks are compressed with LZ4, ZSTD or not at all, not with method {method:#x}",
            "UNKNOWN_COMPRESSION_METHOD",
        )
    data = _decompressed(method, block[_HEADER.size :], plain_size)
    if data is None or len(data) != plain_size:
        raise _broken(offset, f"it is not {plain_size} bytes in {_NAMES[method]}")
    return data, start + size


def _decompressed(method: int, packed: bytes, size: int) -> bytes | None:
    """Decompress into no more than so many bytes; None where it does not fit."""
    import lz4.block

    if method == _NONE:
        return packed
    try:
        if method == _LZ4:
            plain: bytes = lz4.block.decompress(packed, uncompressed_size=size)
            return plain
        # A frame with a false size would have as many bytes allocated.
        if zstandard.frame_content_size(packed) not in {-1, size}:
            return None
        return zstandard.ZstdDecompressor().decompress(packed, max_output_size=size or 1)
    except (lz4.block.LZ4BlockError, zstandard.ZstdError):
        return None


def _checksum(block: bytes) -> bytes:
    from clickhouse_cityhash.cityhash import CityHash128

    number: int = CityHash128(block)
    high, low = divmod(number, 2**64)
    return _CHECKSUM.pack(high, low)


def _broken(offset: int, why: str) -> QueryError:
    return QueryError(
        _CANNOT_DECOMPRESS,
        f"the compressed block at byte {offset} cannot be read: {why}",
        "CANNOT_DECOMPRESS",
    )


def decompress(body: bytes, encoding: str, limit: int) -> bytes:
    """Undo the encoding of a request.

    Raises:
        QueryError: it is broken, unknown, or holds more than ``limit`` bytes.
    """
    encoding = encoding.strip().lower()
    try:
        if encoding == "lz4":
            return _unlz4(body, limit)
        return decompression.decompress(body, encoding, limit)
    except TooLarge as error:
        raise QueryError(TOO_LARGE, str(error), "TOO_MANY_BYTES") from error
    except RequestError as error:
        raise QueryError(BAD_ARGUMENTS, str(error), "BAD_ARGUMENTS") from error


def compress(body: bytes, accepted: str) -> tuple[bytes, str]:
    """Encode a result in the first supported encoding that the client accepts; small ones in none."""
    names = {part.partition(";")[0].strip().lower() for part in accepted.split(",")}
    if len(body) < _SMALL:
        return body, ""
    if "zstd" in names:
        return zstandard.ZstdCompressor(level=1).compress(body), "zstd"
    if "gzip" in names:
        stream = zlib.compressobj(1, wbits=16 + zlib.MAX_WBITS)
        return stream.compress(body) + stream.flush(), "gzip"
    return body, ""


def _unlz4(body: bytes, limit: int) -> bytes:
    # The preference of clickhouse-connect, which installs the library.
    import lz4.frame  # type: ignore[import-untyped]

    try:
        stream = lz4.frame.LZ4FrameDecompressor()
        data: bytes = stream.decompress(body, max_length=limit + 1)
    except RuntimeError as error:
        raise RequestError(f"the body is no valid lz4: {error}") from error
    if len(data) > limit:
        raise TooLarge(f"the request has more than {limit} bytes decompressed")
    if not stream.eof:
        raise RequestError("the compressed body is not whole")
    return data
