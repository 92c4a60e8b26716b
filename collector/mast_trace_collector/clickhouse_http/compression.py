"""Content encodings of requests and results."""

from __future__ import annotations

import zlib

import zstandard

from mast_trace_collector.clickhouse_http.errors import BAD_ARGUMENTS, TOO_LARGE, QueryError
from mast_trace_collector.otlp import decompression
from mast_trace_collector.otlp.errors import RequestError, TooLarge

_SMALL = 1024


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
