"""ClickHouse's compressed blocks, held against two other implementations: its engine and its driver."""

from __future__ import annotations

import struct
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

import clickhouse_driver.compression as drivers
import lz4.block
import pytest
import zstandard
from clickhouse_cityhash.cityhash import CityHash128
from hypothesis import given, settings
from hypothesis import strategies as st
from test_endpoint_clients import get

from mast_trace_collector.clickhouse_http import blocks
from mast_trace_collector.clickhouse_http.errors import QueryError

if TYPE_CHECKING:
    from mast_trace_collector.storage import Store

LIMIT = 10_000_000


def block(method: int, packed: bytes, size: int) -> bytes:
    """A block with a right checksum, whatever else is wrong with it."""
    checked = struct.pack("<BII", method, 9 + len(packed), size) + packed
    number: int = CityHash128(checked)
    return struct.pack("<QQ", *divmod(number, 2**64)) + checked


def by_driver(body: bytes) -> bytes:
    """The content of one block, as the Python driver of ClickHouse's native protocol reads it."""
    stream = BytesIO(body)
    high, low = struct.unpack("<QQ", stream.read(16))
    method = stream.read(1)[0]
    decompressor = drivers.get_decompressor_cls(method)(stream)
    found: bytes = decompressor.get_decompressed_data(method, (high << 64) + low, 1)
    return found


@given(data=st.one_of(st.binary(max_size=4000), st.integers(0, 5000).map(lambda n: b"ab" * n)))
@settings(max_examples=150, deadline=None)
def test_what_is_packed_comes_out_again(data: bytes) -> None:
    packed = blocks.pack(data)
    assert blocks.unpack(packed, len(data)) == data
    assert not data or by_driver(packed) == data


def test_large_bodies_are_rows_of_blocks() -> None:
    data = bytes(range(256)) * 12_000
    packed = blocks.pack(data)
    assert blocks.unpack(packed, len(data)) == data
    with pytest.raises(QueryError, match="too many bytes"):
        blocks.unpack(packed, len(data) - 1)


@pytest.mark.parametrize("codec", ["LZ4", "LZ4HC(9)", "ZSTD(3)", "NONE"])
def test_what_the_engine_itself_wrote_is_read(embedded: Store, codec: str) -> None:
    """A column on its disk is a row of such blocks."""
    embedded.command(
        f"CREATE OR REPLACE TABLE packed (x UInt32 CODEC({codec})) ENGINE = MergeTree ORDER BY () "
        "SETTINGS min_bytes_for_wide_part = 0, serialization_info_version = 'basic'"
    )
    embedded.command("INSERT INTO packed SELECT number FROM numbers(300000)")
    (part,) = embedded.query(
        "SELECT path FROM system.parts WHERE table = 'packed' AND active AND database = currentDatabase()"
    )
    body = Path(part["path"], "x.bin").read_bytes()
    expected = struct.pack("<300000I", *range(300_000))
    assert blocks.unpack(body, LIMIT) == expected
    embedded.command("DROP TABLE packed")


@pytest.mark.parametrize("method", [0x82, 0x90, 0x02])
def test_every_method_is_read(method: int) -> None:
    data = b"SELECT 1 AS one" * 9
    packed = {
        0x82: lz4.block.compress(data, store_size=False),
        0x90: zstandard.compress(data),
        0x02: data,
    }[method]
    assert blocks.unpack(block(method, packed, len(data)) * 2, LIMIT) == data * 2


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"SELECT 1", "cut off"),
        (blocks.pack(b"x")[:-1], "cut off"),
        (block(0x82, b"", 5), "not 5 bytes in LZ4"),
        (block(0x82, lz4.block.compress(b"abc", store_size=False), 2), "not 2 bytes in LZ4"),
        (block(0x82, lz4.block.compress(b"abc", store_size=False), 4), "not 4 bytes in LZ4"),
        (block(0x90, zstandard.compress(b"abc" * 99), 3), "not 3 bytes in ZSTD"),
        (block(0x90, b"junk", 3), "not 3 bytes in ZSTD"),
        (block(0x02, b"abc", 2), "not 2 bytes in none"),
        (block(0x91, b"abc", 3), "not with method 0x91"),
        (block(0x82, b"abc", 2**32 - 1), "too many bytes"),
        (struct.pack("<16xBII", 0x82, 3, 1), "cut off"),
        (struct.pack("<16xBII", 0x82, 2**32 - 1, 1), "cut off"),
    ],
)
def test_what_is_broken_is_refused(body: bytes, message: str) -> None:
    with pytest.raises(QueryError, match=message):
        blocks.unpack(body, LIMIT)


@given(data=st.binary(max_size=300), at=st.integers(0, 10_000), bit=st.integers(0, 7))
@settings(max_examples=200, deadline=None)
def test_a_flipped_bit_is_always_seen(data: bytes, at: int, bit: int) -> None:
    packed = bytearray(blocks.pack(data + b"!"))
    packed[at % len(packed)] ^= 1 << bit
    with pytest.raises(QueryError):
        blocks.unpack(bytes(packed), LIMIT)


@given(body=st.binary(max_size=400))
@settings(max_examples=200, deadline=None)
def test_junk_is_refused(body: bytes) -> None:
    if body:
        with pytest.raises(QueryError):
            blocks.unpack(body, LIMIT)


class TestEndpoint:
    """As a JDBC driver asks."""

    @pytest.mark.parametrize(
        "form", ["RowBinaryWithNamesAndTypes", "TabSeparated", "JSON", "Native"]
    )
    def test_a_result_in_blocks(self, endpoint: str, form: str) -> None:
        sql = f"SELECT number, toString(number) AS s FROM numbers(200000) FORMAT {form}"
        _, plain = get(endpoint, query=sql)
        headers, packed = get(endpoint, query=sql, compress=1)
        assert headers["Content-Encoding"] is None
        assert len(packed) < len(plain)
        if form == "JSON":  # it tells how long the query took
            plain, packed = plain[:5000], blocks.pack(blocks.unpack(packed, LIMIT)[:5000])
        assert blocks.unpack(packed, LIMIT) == plain

    @pytest.mark.parametrize("method", [0x82, 0x90, 0x02])
    def test_a_query_in_blocks(self, endpoint: str, method: int) -> None:
        sql = b"SELECT 'in blocks'"
        packed = {
            0x82: lz4.block.compress(sql, store_size=False),
            0x90: zstandard.compress(sql),
            0x02: sql,
        }[method]
        _, body = get(endpoint, data=block(method, packed, len(sql)), decompress=1)
        assert body == b"in blocks\n"

    def test_both_ways_with_the_encoding_of_http_around(self, endpoint: str) -> None:
        headers, body = get(
            endpoint,
            data=zstandard.compress(blocks.pack(b"SELECT repeat('x', 9000)")),
            headers={"Content-Encoding": "zstd", "Accept-Encoding": "zstd"},
            compress=1,
            decompress=1,
            enable_http_compression=1,
        )
        if headers["Content-Encoding"] == "zstd":
            body = zstandard.decompress(body)
        assert blocks.unpack(body, LIMIT) == b"x" * 9000 + b"\n"
