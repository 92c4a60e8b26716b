"""Requests, errors and bytes of the ClickHouse endpoint, where no engine is asked."""

import gzip
import random
import re
import struct

import lz4.block
import lz4.frame
import pytest
import zstandard
from clickhouse_cityhash.cityhash import CityHash128

from mast_trace_collector.clickhouse_http import compression
from mast_trace_collector.clickhouse_http import rendering as native
from mast_trace_collector.clickhouse_http.compression import compress, decompress
from mast_trace_collector.clickhouse_http.errors import EngineError, QueryError
from mast_trace_collector.clickhouse_http.statement import Statement, asks_for, read_statement

FORM = "multipart/form-data; boundary=B"
FAILED = "the statement failed"
TEXT = bytes(random.Random(7).choices(b"abcdef", k=5000))


def part(name, value):
    head = f'--B\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n'
    return head.encode() + value + b"\r\n"


def failing(code, text, name, act, *args):
    """Check that a call fails with this error of a server."""
    with pytest.raises(QueryError) as error:
        act(*args)
    found = (error.value.code, error.value.text)
    assert found == (code, f"Code: {code}. DB::Exception: {text} ({name})")


class TestStatements:
    """Statements, put together from the address and the body."""

    @pytest.mark.parametrize(
        ("fields", "content_type", "body", "expected"),
        [
            ({"query": " SELECT 1;; "}, "", b"", Statement("SELECT 1")),
            ({}, "", b"SELECT 1;", Statement("SELECT 1")),
            ({"query": "SELECT"}, "", "'ü'".encode(), Statement("SELECT\n'ü'")),
            (
                {
                    "query": "SELECT 1",
                    "param_a": "x",
                    "param_param_b": "y",
                    "max_threads": "2",
                    "database": "d",
                    "default_format": "CSV",
                    "client_protocol_version": "54460",
                    "query_id": "q",
                    "session_id": "s",
                    "param_x_types": "z",
                    "_types": "a",
                },
                "",
                b"",
                Statement(
                    "SELECT 1",
                    params={"a": "x", "param_b": "y", "x_types": "z"},
                    settings={"max_threads": "2", "_types": "a"},
                    database="d",
                    default_format="CSV",
                    protocol=54460,
                    query_id="q",
                ),
            ),
            ({"query": "S", "default_format": ""}, "", b"", Statement("S")),
            *(
                ({"query": "S", "client_protocol_version": text}, "", b"", Statement("S", protocol=n))
                for text, n in (("x", 0), ("", 0), ("-1", 0), ("999999999", 999999999), ("1000000000", 0))
            ),
            ({"query": "INSERT INTO t FORMAT CSV"}, "", b"\xff1\n", Statement("INSERT INTO t FORMAT CSV", b"\xff1\n")),
            ({"query": "\n insert into t values (1)"}, "", b"", Statement("insert into t values (1)")),
            ({"query": "INSERTED"}, "", b"x", Statement("INSERTED\nx")),
            ({}, "", b"INSERT INTO t FORMAT CSV\n\xff1\n", Statement("INSERT INTO t FORMAT CSV", b"\xff1\n")),
            ({}, "", b"INSERT INTO t VALUES (1)", Statement("INSERT INTO t VALUES (1)")),
            (
                {"query": "SELECT {a:String}", "database": "d"},
                FORM,
                part("param_a", "ü".encode()) + part("database", b"e") + b"--B--\r\n",
                Statement("SELECT {a:String}", params={"a": "ü"}, database="e"),
            ),
        ],
    )  # fmt: skip
    def test_they_are_read_as_by_a_server(self, fields, content_type, body, expected):
        assert read_statement(fields, content_type, body) == expected

    def test_what_makes_no_statement_is_refused(self):
        empty = "Syntax error: the query is empty"
        for fields, body in (({}, b""), ({"query": " "}, b" \n"), ({"query": ""}, b"")):
            failing(62, empty, "SYNTAX_ERROR", read_statement, fields, "", body)
        name = "BAD_ARGUMENTS"
        why = "'utf-8' codec can't decode byte 0xff in position 0: invalid start byte"
        text = f"the query is not UTF-8: {why}"
        failing(36, text, name, read_statement, {}, "", b"\xff")
        failing(36, text, name, read_statement, {}, FORM, part("query", b"\xff") + b"--B--")
        for body in (
            b"--B\r\nContent-Disposition: form-data\r\n\r\na\r\n--B--",
            (
                b"--B\r\nContent-Type: multipart/mixed; boundary=C\r\n"
                b'Content-Disposition: form-data; name="x"\r\n\r\n--C\r\n\r\na\r\n--C--\r\n--B--'
            ),
        ):
            failing(36, "the form cannot be read", name, read_statement, {}, FORM, body)

    @pytest.mark.parametrize("field", ["ids_structure", "my_ids_types"])
    def test_tables_are_not_sent_along(self, field):
        table = field.rpartition("_")[0]
        text = (
            f"tables cannot be sent along ({table}): name the values in the query, such as "
            "WITH [1, 2, 3] AS ids SELECT ... WHERE has(ids, id)"
        )
        name = "SUPPORT_IS_DISABLED"
        failing(48, text, name, read_statement, {"query": "SELECT 1", field: "x"}, "", b"")

    @pytest.mark.parametrize(
        ("sql", "form", "without", "has_result", "is_select"),
        [
            ("SELECT 1", "TSV", "SELECT 1", True, True),
            ("SELECT 1 FORMAT CSV", "CSV", "SELECT 1 ", True, True),
            ("(select 1) format JSON settings a = 1 ;", "JSON", "(select 1) ", True, True),
            ("-- a\n/* b */WITH 1 AS x SELECT x", "TSV", "-- a\n/* b */WITH 1 AS x SELECT x", True, True),
            ("/* SELECT */ SHOW TABLES", "TSV", "/* SELECT */ SHOW TABLES", True, False),
            ("SELECTED", "TSV", "SELECTED", True, False),
            (" insert INTO t VALUES (1)", "TSV", " insert INTO t VALUES (1)", False, False),
            ("USED", "TSV", "USED", True, False),
        ],
    )  # fmt: skip
    def test_their_form(self, sql, form, without, has_result, is_select):
        statement = Statement(sql, default_format="TSV")
        assert (statement.format, statement.without_format) == (form, without)
        assert (statement.has_result, statement.is_select) == (has_result, is_select)

    def test_many_comments_are_passed_quickly(self):
        assert not Statement("/**/" * 5000 + "SHOW TABLES").is_select

    def test_what_asks_for_blocks(self):
        for value, asked in (("1", True), ("true", True), ("0", False), ("", False)):
            assert asks_for({"compress": value}, "compress") is asked
            assert asks_for({"compress": value}, "decompress") is False


class TestErrors:
    """Errors as a server answers them."""

    @pytest.mark.parametrize(
        ("text", "code", "told"),
        [
            ("no table x. (UNKNOWN_TABLE) (version 26.9.2.1)", 60, "no table x. (UNKNOWN_TABLE)"),
            (
                "cannot parse: while executing 'x' in part all_1. (CANNOT_PARSE_TEXT)",
                6,
                "cannot parse. (CANNOT_PARSE_TEXT)",
            ),
            ("a b. Maybe you meant: c", 36, "a b"),
            (
                f"no x in mast_readers.q_{'0' * 32}(on = 1). (UNKNOWN_IDENTIFIER)",
                47,
                "no x in the statement. (UNKNOWN_IDENTIFIER)",
            ),
            (
                "used 5.1 GiB (MEMORY_LIMIT_EXCEEDED)",
                241,
                f"{FAILED} for want of memory. (MEMORY_LIMIT_EXCEEDED)",
            ),
            (
                "mast_seat_1: no rights to SELECT on x (ACCESS_DENIED)",
                497,
                f"{FAILED}: it needs what a reader may not read. (ACCESS_DENIED)",
            ),
            ("cannot open /data/store/x (STD_EXCEPTION)", 1001, f"{FAILED}. (STD_EXCEPTION)"),
            ("no such file", 107, FAILED),
            (
                "two columns a (ILLEGAL_COLUMN)",
                44,
                "two columns a. (ILLEGAL_COLUMN): name the columns apart with AS",
            ),
        ],
    )
    def test_a_reader_is_told_nothing_of_files_and_other_names(self, text, code, told):
        begin = f"Code: {code}. DB::Exception: "
        for before in ("", "Error: "):
            error = EngineError(f"{before}{begin}{text}")
            assert (error.code, error.text) == (code, begin + text)
            assert str(error) == error.text
            assert (error.for_reader().code, error.for_reader().text) == (code, begin + told)

    def test_an_error_without_a_code_is_the_first(self):
        error = EngineError("something else")
        assert (error.code, error.text, str(error)) == (1, "something else", "something else")
        assert (error.for_reader().code, error.for_reader().text) == (1, "something else")

    def test_each_has_a_status(self):
        statuses = {497: 403, 516: 403, 60: 404, 62: 400, 307: 413, 159: 408, 7: 500}
        assert {code: QueryError(code, "x", "Y").status for code in statuses} == statuses


class TestEncodings:
    """Encodings of HTTP."""

    def test_each_is_undone(self):
        for encoding, packed in (
            ("", TEXT),
            (" GZip ", gzip.compress(TEXT)),
            ("zstd", zstandard.compress(TEXT)),
            ("lz4", lz4.frame.compress(TEXT)),
        ):
            assert decompress(packed, encoding, len(TEXT)) == TEXT
            text = f"the request has more than {len(TEXT) - 1} bytes decompressed"
            failing(307, text, "TOO_MANY_BYTES", decompress, packed, encoding, len(TEXT) - 1)

    def test_what_is_broken_is_refused(self):
        name = "BAD_ARGUMENTS"
        packed = lz4.frame.compress(TEXT)[:-5]
        failing(36, "the compressed body is not whole", name, decompress, packed, "lz4", 9999)
        text = "content encoding 'br' is not supported; use gzip, deflate or zstd"
        failing(36, text, name, decompress, TEXT, "br", 9999)
        with pytest.raises(QueryError, match=r"^Code: 36\..*the body is no valid lz4: .*\(BAD_ARG"):
            decompress(TEXT, "lz4", 9999)

    def test_the_first_that_the_client_takes_and_none_for_a_small_body(self):
        for accepted, encoding in (
            ("", ""),
            ("br", ""),
            ("gzip", "gzip"),
            ("gzip, deflate, ZSTD;q=0.5", "zstd"),
            ("deflate , GZIP ;q=1", "gzip"),
        ):
            packed, used = compress(TEXT, accepted)
            assert used == encoding
            assert decompress(packed, used, len(TEXT)) == TEXT
            assert len(packed) < 3500 or not encoding
            assert compress(TEXT[:1023], accepted) == (TEXT[:1023], "")
            assert compress(TEXT[:1024], accepted)[1] == encoding


class TestBlocks:
    """Blocks with a checksum."""

    @staticmethod
    def block(method, packed, size, stated_size=None):
        checked = struct.pack("<BII", method, stated_size or 9 + len(packed), size) + packed
        high, low = divmod(CityHash128(checked), 2**64)
        return struct.pack("<QQ", high, low) + checked

    def test_large_ones_are_cut_at_a_mebibyte(self):
        data = TEXT * 430
        packed = compression.pack(data)
        assert packed[16] == 0x82
        assert struct.unpack("<I", packed[21:25]) == (2**20,)
        size = 16 + struct.unpack("<I", packed[17:21])[0]
        last = size + 16 + struct.unpack("<I", packed[size + 17 :][:4])[0]
        for at, rest in ((0, 2**20), (size, 2**20), (last, len(data) - 2 * 2**20)):
            assert struct.unpack("<I", packed[at + 21 : at + 25]) == (rest,)
        assert compression.unpack(packed, len(data)) == data
        assert compression.pack(b"") == b""

    def test_each_mistake_has_a_text_and_a_number(self):
        good = compression.pack(b"abc")
        at = f"the compressed block at byte {len(good)} cannot be read: "
        text = "blocks are compressed with LZ4, ZSTD or not at all, not with method 0x91"
        data, no = lz4.block.compress(b"abc", store_size=False), "CANNOT_DECOMPRESS"
        sized = zstandard.ZstdCompressor(write_content_size=False).compress(b"abc")
        for body, code, words, name in (
            (good[:-1], 271, at + "it is cut off", no),
            (good[:20], 271, at + "it is cut off", no),
            (struct.pack("<16xBII", 0x82, 2**32 - 1, 1), 271, at + "it is cut off", no),
            (self.block(0x82, b"", 0, 8), 271, at + "it is cut off", no),
            (self.block(0x82, b"", 5), 271, at + "it is not 5 bytes in LZ4", no),
            (self.block(0x82, data, 2), 271, at + "it is not 2 bytes in LZ4", no),
            (self.block(0x82, data, 4), 271, at + "it is not 4 bytes in LZ4", no),
            (self.block(0x02, b"abc", 4), 271, at + "it is not 4 bytes in none", no),
            (self.block(0x90, sized, 4), 271, at + "it is not 4 bytes in ZSTD", no),
            (
                self.block(0x90, zstandard.compress(b"abc" * 9), 3),
                271,
                at + "it is not 3 bytes in ZSTD",
                no,
            ),
            (self.block(0x90, b"junk", 3), 271, at + "it is not 3 bytes in ZSTD", no),
            (self.block(0x91, b"abc", 3), 89, text, "UNKNOWN_COMPRESSION_METHOD"),
            (
                self.block(0x82, data, 98),
                307,
                "the request has too many bytes decompressed",
                "TOO_MANY_BYTES",
            ),
            (
                good[:-1] + bytes([good[-1] ^ 1]),
                40,
                f"the checksum of the compressed block at byte {len(good)} does not match",
                "CHECKSUM_DOESNT_MATCH",
            ),
        ):
            failing(code, words, name, compression.unpack, good + body, 100)
        for method, packed in ((0x90, sized), (0x90, zstandard.compress(b"abc")), (0x02, b"abc")):
            assert (
                compression.unpack(good + self.block(method, packed, 3) + good, 9) == b"abcabcabc"
            )
        assert compression.unpack(self.block(0x02, b"", 0) + good, 3) == b"abc"


class TestNative:
    """Blocks of the Native format."""

    def test_names_and_types_of_columns(self):
        long = "ü" * 100
        assert native.header([]) == b"\0\0"
        assert native.header([("a", "UInt8"), (long, "String")]) == (
            b"\x02\x00\x01a\x05UInt8\xc8\x01" + long.encode() + b"\x06String"
        )
        for size, prefix in ((127, b"\x7f"), (128, b"\x80\x01"), (16384, b"\x80\x80\x01")):
            assert native.header([("a" * size, "")]) == b"\1\0" + prefix + b"a" * size + b"\0"

    def test_the_greeting(self):
        assert native.hello("26.9") == native.BLOCK_INFO + (
            b"\x04\x01"
            b"\x0ddisplayName()\x06String\x00\x0amast-trace"
            b"\x09version()\x06String\x00\x0426.9"
            b"\x0arevision()\x06UInt32\x00\xb5\xd4\x00\x00"
            b"\x0atimezone()\x06String\x00\x03UTC"
        )
        assert re.findall(rb"\w+\(\)", native.hello("x")) == native.HELLO.encode()[7:].split(b", ")
