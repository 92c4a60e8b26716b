"""ClickHouse's compressed compression, held against two other implementations: its engine and its driver."""

from __future__ import annotations

import struct
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

import clickhouse_driver.compression as drivers
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st
from test_endpoint_clients import get

from mast_trace_collector.clickhouse_http import compression
from mast_trace_collector.clickhouse_http.errors import QueryError

if TYPE_CHECKING:
    from mast_trace_collector.storage import Store

LIMIT = 10_000_000


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
    packed = compression.pack(data)
    assert compression.unpack(packed, len(data)) == data
    assert not data or by_driver(packed) == data


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
    assert compression.unpack(body, LIMIT) == expected
    embedded.command("DROP TABLE packed")


@given(data=st.binary(max_size=300), at=st.integers(0, 10_000), bit=st.integers(0, 7))
@settings(max_examples=200, deadline=None)
def test_a_flipped_bit_is_always_seen(data: bytes, at: int, bit: int) -> None:
    packed = bytearray(compression.pack(data + b"!"))
    packed[at % len(packed)] ^= 1 << bit
    with pytest.raises(QueryError):
        compression.unpack(bytes(packed), LIMIT)


@given(body=st.binary(max_size=400))
@settings(max_examples=200, deadline=None)
def test_junk_is_refused(body: bytes) -> None:
    if body:
        with pytest.raises(QueryError):
            compression.unpack(body, LIMIT)


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
            plain, packed = plain[:5000], compression.pack(compression.unpack(packed, LIMIT)[:5000])
        assert compression.unpack(packed, LIMIT) == plain

    def test_both_ways_with_the_encoding_of_http_around(self, endpoint: str) -> None:
        headers, body = get(
            endpoint,
            data=zstandard.compress(compression.pack(b"SELECT repeat('x', 9000)")),
            headers={"Content-Encoding": "zstd", "Accept-Encoding": "zstd"},
            compress=1,
            decompress=1,
            enable_http_compression=1,
        )
        if headers["Content-Encoding"] == "zstd":
            body = zstandard.decompress(body)
        assert compression.unpack(body, LIMIT) == b"x" * 9000 + b"\n"
