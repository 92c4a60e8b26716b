"""Compressed bodies are read whole, and never beyond the limit."""

from __future__ import annotations

import contextlib
import gzip
import io
import random
import struct
import zlib

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from mast_trace_collector.otlp.decompression import decompress
from mast_trace_collector.otlp.errors import RequestError, TooLarge, UnsupportedMediaType

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


def test_an_uncompressed_body_is_bounded_too() -> None:
    assert decompress(b"abc", "", 3) == decompress(b"abc", "identity", 3) == b"abc"
    with pytest.raises(TooLarge):
        decompress(b"abcd", "", 3)


def test_an_encoding_is_what_it_is_called() -> None:
    with pytest.raises(RequestError):
        decompress(zlib.compress(b"abc"), "gzip", LIMIT)
    with pytest.raises(UnsupportedMediaType, match="br"):
        decompress(b"", "br", LIMIT)


def skippable_frame(_: bytes) -> bytes:
    return struct.pack("<II", 0x184D2A50, 0)


MEMBERS = pytest.mark.parametrize(
    ("encoding", "member"),
    [
        ("gzip", gzip.compress),
        ("zstd", zstandard.ZstdCompressor().compress),
        ("zstd", zstd_stream),
        ("zstd", skippable_frame),
    ],
)


@MEMBERS
def test_members_are_read_one_after_the_other_and_counted(encoding, member) -> None:
    """Each end of a member made the rest be copied: 20 MB of empty ones took more than minutes."""
    empty = member(b"")
    assert decompress(empty * 9_999 + gzip_or_zstd(encoding, b"last"), encoding, LIMIT) == b"last"
    with pytest.raises(TooLarge, match="10000 compressed members"):
        decompress(empty * 1_000_000, encoding, LIMIT)


def gzip_or_zstd(encoding: str, data: bytes) -> bytes:
    return gzip.compress(data) if encoding == "gzip" else zstandard.compress(data)


@codecs
def test_the_time_is_bounded(encoding, compress) -> None:
    """Bodies of any kind are decompressed; one that a single call decompresses is small."""
    body = compress(random.Random(1).randbytes(2_000_000))
    with pytest.raises(TooLarge, match="takes more than 0 s"):
        decompress(body, encoding, 4_000_000, seconds=0)


def test_frames_of_zstd_are_joined() -> None:
    """As RFC 8878 says, and parallel compressors write them."""
    large = random.Random(2).randbytes(600_000)
    frames = [zstd_stream(large), skippable_frame(b""), zstandard.compress(large)]
    assert decompress(b"".join(frames), "zstd", 2_000_000) == large * 2
