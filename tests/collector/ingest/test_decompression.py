"""Compressed bodies are read whole, and never beyond the limit."""

from __future__ import annotations

import contextlib
import gzip
import io
import zlib

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from mast_trace_collector.receivers.decompression import decompress
from mast_trace_collector.receivers.request_error import (
    RequestError,
    TooLarge,
    UnsupportedMediaType,
)

LIMIT = 100_000


def raw_deflate(data: bytes) -> bytes:
    stream = zlib.compressobj(wbits=-15)
    return stream.compress(data) + stream.flush()


def zstd_stream(data: bytes) -> bytes:
    """Without the content's size in its header."""
    out = io.BytesIO()
    with zstandard.ZstdCompressor().stream_writer(out, closefd=False) as writer:
        writer.write(data)
    return out.getvalue()


CODECS = [
    ("gzip", gzip.compress),
    ("deflate", zlib.compress),
    ("deflate", raw_deflate),
    ("zstd", zstandard.ZstdCompressor().compress),
    ("zstd", zstd_stream),
]
codecs = pytest.mark.parametrize(("encoding", "compress"), CODECS)


@codecs
@given(data=st.binary(max_size=5000))
def test_what_was_compressed_comes_back(encoding, compress, data: bytes) -> None:
    assert decompress(compress(data), encoding, LIMIT) == data


@codecs
def test_a_bomb_is_refused(encoding, compress) -> None:
    bomb = compress(b"\0" * 50_000_000)
    assert len(bomb) < LIMIT
    with pytest.raises(TooLarge):
        decompress(bomb, encoding, LIMIT)


@codecs
def test_exactly_the_limit_is_accepted(encoding, compress) -> None:
    data = b"x" * LIMIT
    assert decompress(compress(data), encoding, LIMIT) == data
    with pytest.raises(TooLarge):
        decompress(compress(data + b"x"), encoding, LIMIT)


@codecs
@given(cut=st.integers(1, 20))
def test_a_truncated_body_is_refused(encoding, compress, cut: int) -> None:
    """A cut stream could otherwise pass for a shorter request."""
    body = compress(b"some request " * 50)
    with pytest.raises(RequestError):
        decompress(body[:-cut], encoding, LIMIT)


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "zstd"])
@given(body=st.binary(min_size=1, max_size=300))
def test_noise_is_refused_or_read(encoding: str, body: bytes) -> None:
    with contextlib.suppress(RequestError):
        assert len(decompress(body, encoding, LIMIT)) <= LIMIT


def test_gzip_members_are_joined() -> None:
    assert decompress(gzip.compress(b"one") + gzip.compress(b"two"), "gzip", LIMIT) == b"onetwo"


def test_an_uncompressed_body_is_bounded_too() -> None:
    assert decompress(b"abc", "", 3) == decompress(b"abc", "identity", 3) == b"abc"
    with pytest.raises(TooLarge):
        decompress(b"abcd", "", 3)


def test_an_unknown_encoding_is_refused() -> None:
    with pytest.raises(UnsupportedMediaType, match="br"):
        decompress(b"", "br", LIMIT)
