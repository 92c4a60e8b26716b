"""Clients of a ClickHouse server read the embedded store, unmodified."""

import urllib.parse
import urllib.request
from datetime import datetime, timezone

import clickhouse_connect
import pytest
from clickhouse_connect.driver.exceptions import DatabaseError
from endpoint_server import PASSWORD
from otlp_requests import agent_span, request

from mast_trace_collector.clickhouse_http.rendering import BLOCK_INFO, HELLO
from mast_trace_collector.storage.span_writer import SpanWriter


@pytest.fixture
def client(endpoint):
    """clickhouse-connect's HTTP client, as a reader."""
    with connected(endpoint, username="reader", database="mast_trace") as client:
        yield client


def connected(endpoint, **options):
    host, port = endpoint.split(":")
    return clickhouse_connect.get_client(host=host, port=int(port), password=PASSWORD, **options)


def get(endpoint, path="/", *, data=None, headers=None, **fields):
    """Send one request as curl would; returns (headers, body)."""
    url = f"http://{endpoint}{path}?{urllib.parse.urlencode(fields)}"
    headers = {"X-ClickHouse-Key": PASSWORD, **(headers or {})}
    sent = urllib.request.Request(url, data=data, headers=headers)
    with urllib.request.urlopen(sent) as answer:
        return answer.headers, answer.read()


class TestClickhouseConnect:
    """The synchronous client."""

    def test_it_reads_what_was_stored(self, client, embedded):
        SpanWriter(embedded).write([request(agent_span(1), agent_span(2, parent=1))], token="t")
        rows = client.query("SELECT SpanName, Operation FROM otel_traces ORDER BY SpanName")
        assert rows.result_rows == [("chat 1", "chat"), ("chat 2", "chat")]
        assert client.query("SELECT Spans FROM mast_runs").result_rows == [(2,)]

    def test_parameters_of_every_shape_arrive(self, client):
        at = datetime(2026, 5, 6, 7, 8, 9, 123456, tzinfo=timezone.utc)
        values = {"s": "it's \\ \n\t🙂", "a": ["x", "y'z"], "n": None, "t": at}
        row = client.query(
            "SELECT {s:String} AS s, {a:Array(String)} AS a, {n:Nullable(Int8)} AS n, "
            "toUnixTimestamp64Micro({t:DateTime64(6)}) AS t",
            parameters=values,
        ).first_item
        assert row == {**values, "t": int(at.timestamp()) * 10**6 + 123456}

    def test_a_parameter_too_large_for_the_address_arrives(self, client):
        text = "x" * 200_000
        (row,) = client.query("SELECT length({s:String})", parameters={"s": text}).result_rows
        assert row == (200_000,)

    def test_settings_hold_for_one_query_only(self, client):
        sql = "SELECT getSetting('max_block_size')"
        before = client.query(sql).first_row
        assert client.query(sql, settings={"max_block_size": 7}).first_row == (7,)
        for _ in range(8):
            assert client.query(sql).first_row == before

    def test_an_empty_result_has_names_and_types(self, client):
        result = client.query("SELECT TraceId, Duration FROM otel_traces WHERE SpanName = 'none'")
        assert result.result_rows == []
        assert result.column_names == ("TraceId", "Duration")
        assert [kind.name for kind in result.column_types] == ["String", "UInt64"]

    def test_limit_zero_has_names(self, client):
        assert client.query("SELECT 1 AS a, 'x' AS b LIMIT 0").column_names == ("a", "b")

    @pytest.mark.parametrize("compress", [False, "zstd", "gzip", "lz4"])
    def test_large_results_arrive_whole(self, endpoint, compress):
        with connected(endpoint, compress=compress) as client:
            result = client.query("SELECT number, repeat('x', 50) FROM numbers(200000)")
            assert sum(row[0] for row in result.result_rows) == 199_999 * 100_000

    def test_rows_can_be_streamed(self, client):
        with client.query_rows_stream("SELECT number FROM numbers(100000)") as rows:
            assert sum(row[0] for row in rows) == 99_999 * 50_000

    def test_frames_and_arrow(self, client):
        sql = "SELECT number AS n, toString(number) AS s FROM numbers(3)"
        assert client.query_df(sql)["s"].tolist() == ["0", "1", "2"]
        assert client.query_arrow(sql).column("n").to_pylist() == [0, 1, 2]

    def test_an_error_keeps_its_number(self, client):
        with pytest.raises(DatabaseError, match="UNKNOWN_TABLE") as caught:
            client.query("SELECT * FROM nothing")
        assert caught.value.code == 60

    def test_the_database_default_is_the_stores(self, endpoint):
        with connected(endpoint, database="default") as client:
            assert client.query("SELECT currentDatabase()").first_row == ("mast_trace",)


async def test_the_asynchronous_client(endpoint):
    pytest.importorskip("aiohttp", reason="clickhouse-connect's async client needs aiohttp")
    host, port = endpoint.split(":")
    client = await clickhouse_connect.get_async_client(
        host=host, port=int(port), password=PASSWORD, database="mast_trace"
    )
    try:
        result = await client.query("SELECT {n:UInt8} + 1 AS n", parameters={"n": 1})
        assert result.first_item == {"n": 2}
        empty = await client.query("SELECT TraceId FROM mast_runs")
        assert empty.column_names == ("TraceId",)
    finally:
        await client.close()


class TestStatementSettings:
    """Readers through the endpoint have what the store's own connections have."""

    def test_a_filter_that_finds_nothing_leaves_the_next_one_alone(self, endpoint, embedded):
        """ClickHouse's query condition cache confused the two."""
        spans = [agent_span(number, trace=f"{number:032x}") for number in range(1, 40)]
        SpanWriter(embedded).write([request(*spans)], token="t")
        sql = (
            "SELECT count() FROM otel_traces WHERE SpanName != '' AND TraceId IN "
            "(SELECT TraceId FROM mast_run_states WHERE startsWith(TraceId, {start:String}))"
        )
        for start, found in (("f", b"0\n"), ("0", b"39\n"), ("e", b"0\n"), ("00", b"39\n")):
            assert get(endpoint, query=sql, param_start=start)[1] == found

    def test_small_engines_read_with_all_cores(self, endpoint, embedded):
        """By default ClickHouse gives a query one thread per GiB that is free under its limit."""
        own = "SELECT getSetting('max_threads_min_free_memory_per_thread') AS bytes"
        [row] = embedded.query(own)
        assert row["bytes"] == 64 * 1024 * 1024
        assert int(get(endpoint, query=own)[1]) == row["bytes"]


def test_the_greeting_of_grafanas_plugin(endpoint):
    """Checked by the bytes of the answer: there is no Go here to run clickhouse-go."""
    _, body = get(endpoint, query=HELLO, default_format="Native", client_protocol_version=54460)
    assert body.startswith(BLOCK_INFO + b"\x04\x01\x0ddisplayName()\x06String\x00\x0amast-trace")
    assert b"revision()\x06UInt32\x00" + (54453).to_bytes(4, "little") in body
