"""Answers of the ClickHouse endpoint over HTTP: who may ask, and what comes back with the rows."""

import gzip
import json
import threading
from base64 import b64encode

import pytest
import zstandard
from endpoint_server import PASSWORD, WRITE_TOKEN
from endpoint_sweep import OURS, THEIRS
from starlette.testclient import TestClient

from mast_trace.exceptions import ConfigurationError
from mast_trace_collector.clickhouse_http import ClickHouseHTTP, compression
from mast_trace_collector.security import ProjectKeys, Right, hash_of, new_key
from mast_trace_collector.storage import Store

SQL = "SELECT DISTINCT Project FROM mast_runs ORDER BY 1"
ALL, ONE = f"{OURS}\n{THEIRS}\n", f"{OURS}\n"
HERE, ELSEWHERE = ("127.0.0.1", 1), ("10.0.0.9", 1)


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    """A key that reads, one that only writes, and the file's keys."""
    reads, line = new_key(OURS, frozenset({Right.READ}))
    writes, other = new_key(THEIRS)
    file = tmp_path_factory.mktemp("keys") / "keys"
    file.write_text(f"{line}\n{other}\n")
    return reads, writes, ProjectKeys(file)


@pytest.fixture(scope="module")
def app(both, keys):
    app = ClickHouseHTTP(both, password=PASSWORD, keys=keys[2], write_token=WRITE_TOKEN)
    yield app
    app.close()


@pytest.fixture
def ask(app):
    """Ask as a reader of everything, on this machine."""

    def ask(sql, *, data=None, headers=None, client=HERE, method=None, path="/", **fields):
        known = {"X-ClickHouse-Key": PASSWORD, "Accept-Encoding": ""}
        headers = known if headers is None else headers
        params = {"query": sql, **fields} if sql is not None else fields
        way = method or ("POST" if data is not None else "GET")
        asking = TestClient(app, client=client)
        return asking.request(way, path, params=params, content=data, headers=headers)

    return ask


def basic(text):
    return {"Authorization": "basic " + b64encode(text.encode()).decode()}


class TestWhoAsks:
    """Credentials, and the places of a request that may hold them."""

    def test_a_password_or_a_key_in_whatever_place(self, ask, keys):
        reads, writes, _ = keys
        for secret, status, body in (
            (PASSWORD, 200, ALL),
            (reads, 200, ONE),
            (WRITE_TOKEN, 200, None),
            (writes, 403, None),
            ("wrong", 403, None),
        ):
            for headers, fields in (
                ({"X-ClickHouse-Key": secret}, {}),
                ({"X-ClickHouse-Key": secret, "Authorization": "Bearer x"}, {"password": "x"}),
                (basic(f"any:{secret}"), {}),
                (basic(f"any:{secret}"), {"password": "x"}),
                ({"Authorization": f"Bearer  {secret} "}, {}),
                ({"Authorization": f"BEARER {secret}"}, {"password": "x"}),
                ({}, {"password": secret}),
                ({"Authorization": f"Digest {secret}"}, {"password": secret}),
            ):
                answer = ask(SQL, headers=headers, database="mast_trace", **fields)
                assert answer.status_code == status, (headers, fields)
                assert body is None or answer.text == body

    def test_a_password_may_have_colons_and_letters_of_any_kind(self, both):
        for secret in ("a:b:c", "pä🙂"):
            app = ClickHouseHTTP(both, password=secret)
            for headers, status in (
                (basic(f"x:{secret}"), 200),
                (basic(secret), 403),
                ({"Authorization": "Basic " + b64encode(b"x:\xff").decode()}, 403),
                ({"Authorization": "Basic a"}, 403),
                ({}, 403),
            ):
                answer = TestClient(app, client=HERE).get(
                    "/", params={"query": "SELECT 1"}, headers=headers
                )
                assert answer.status_code == status, headers
            app.close()

    def test_who_is_not_known_is_told_so(self, ask, keys):
        answer = ask("SELECT 1", headers={"X-ClickHouse-Key": "wrong"}, compress="1")
        assert (answer.status_code, answer.headers["X-ClickHouse-Exception-Code"]) == (403, "516")
        assert answer.text == (
            "Code: 516. DB::Exception: Authentication failed: password is incorrect (AUTHENTICATION_FAILED)"
        )
        answer = ask("SELECT 1", headers={"X-ClickHouse-Key": keys[1]})
        assert (answer.status_code, answer.headers["X-ClickHouse-Exception-Code"]) == (403, "497")
        assert answer.text.startswith(
            f"Code: 497. DB::Exception: this key of project '{THEIRS}' lacks the right to read (it has write)"
        )
        assert answer.text.endswith("(ACCESS_DENIED)")

    def test_who_writes_does_so_from_this_machine(self, ask, both):
        headers = {"X-ClickHouse-Key": WRITE_TOKEN}
        sql = "INSERT INTO mast_trace.mast_human_labels (TraceId, Annotator) VALUES ('x', 'zed')"
        for client, status in ((ELSEWHERE, 403), (("a name", 1), 403), (("::1", 1), 200)):
            answer = ask(None, data=sql.encode(), headers=headers, client=client)
            assert answer.status_code == status
        found = both.query("SELECT count() AS n FROM mast_human_labels WHERE Annotator = 'zed'")
        assert found == [{"n": 1}]
        both.command("DELETE FROM mast_human_labels WHERE Annotator = 'zed'")

    def test_without_a_password_those_on_this_machine_read(self, both, keys):
        app = ClickHouseHTTP(both, keys=keys[2])
        for client, shown, status, body in (
            (HERE, "", 200, ALL),
            (("::1", 1), "wrong", 200, ALL),
            (ELSEWHERE, "", 403, None),
            (("a name", 1), "", 403, None),
            (ELSEWHERE, keys[0], 200, ONE),
        ):
            asking = TestClient(app, client=client, headers={"X-ClickHouse-Key": shown})
            answer = asking.get("/", params={"query": SQL})
            assert answer.status_code == status
            assert body is None or answer.text == body
        app.close()

    def test_the_hash_of_a_password_is_enough(self, both):
        app = ClickHouseHTTP(both, password_hash=hash_of("known"))
        wrong = ("", hash_of("known"), WRITE_TOKEN, "None", "known ")
        for shown, status in (("known", 200), *((each, 403) for each in wrong)):
            asking = TestClient(app, client=HERE, headers={"X-ClickHouse-Key": shown})
            assert asking.get("/", params={"query": "SELECT 1"}).status_code == status
        app.close()

    def test_an_owner_does_anything_and_has_no_readers(self, both):
        app = ClickHouseHTTP(both, of_owner=True)
        asking = TestClient(app, client=ELSEWHERE)
        assert asking.get("/", params={"query": "SHOW DATABASES"}).status_code == 200
        assert app._runner._planner is None
        app.close()

    def test_a_mistake_is_told_before_it_opens(self, both):
        with pytest.raises(ConfigurationError, match="only an embedded store"):
            ClickHouseHTTP(Store.open("http://127.0.0.1:1", connect=False), password="x")
        for empty in ({"password": ""}, {"password": "x", "write_token": ""}):
            with pytest.raises(ConfigurationError, match=r"password .* is empty"):
                ClickHouseHTTP(both, **empty)


class TestAnswers:
    """Headers, formats and statuses around the rows."""

    def test_headers(self, ask):
        answer = ask("SELECT number FROM numbers(3) FORMAT CSV", query_id="mine")
        assert answer.text == "0\n1\n2\n"
        summary = json.loads(answer.headers.pop("X-ClickHouse-Summary"))
        counted = ("read_rows", "read_bytes", "written_rows", "elapsed_ns")
        assert summary == dict.fromkeys(counted, "0")
        told = {name: answer.headers[name] for name in answer.headers if name != "date"}
        assert told == {
            "x-clickhouse-format": "CSV",
            "x-clickhouse-query-id": "mine",
            "x-clickhouse-timezone": "UTC",
            "content-length": "6",
            "content-type": "text/plain; charset=utf-8",
        }
        ids = {ask("SELECT 1").headers["X-ClickHouse-Query-Id"] for _ in range(2)}
        assert {len(each) for each in ids} == {36}
        assert len(ids) == 2
        answer = ask("SELECT 1", default_format="JSONCompact")
        assert answer.headers["Content-Type"] == "application/json"
        assert answer.headers["X-ClickHouse-Format"] == "JSONCompact"
        assert "statistics" not in answer.json(), "they count rows of other projects, too"

    def test_who_writes_is_told_how_much(self, ask):
        headers = {"X-ClickHouse-Key": WRITE_TOKEN}
        answer = ask("SELECT number FROM numbers(1000)", headers=headers)
        summary = json.loads(answer.headers["X-ClickHouse-Summary"])
        assert (summary["read_rows"], summary["written_rows"]) == ("1000", "0")
        assert int(summary["read_bytes"]) == 8000
        assert 0 < int(summary["elapsed_ns"]) < 30 * 10**9
        ask("CREATE TABLE mast_trace.told (a UInt8) ENGINE = Memory", headers=headers, data=b"")
        sql = "INSERT INTO mast_trace.told FORMAT CSV"
        answer = ask(sql, headers=headers, data=b"1\n2\n3\n")
        assert json.loads(answer.headers["X-ClickHouse-Summary"])["written_rows"] == "3"
        assert "X-ClickHouse-Format" not in answer.headers
        assert ask("SELECT sum(a) FROM mast_trace.told", headers=headers).text == "6\n"
        ask("DROP TABLE mast_trace.told", headers=headers, data=b"")

    def test_errors(self, ask):
        for fields, read in (
            ({}, bytes),
            ({"compress": "1"}, lambda body: compression.unpack(body, 9999)),
        ):
            answer = ask("SELECT * FROM nothing", query_id="mine", **fields)
            assert answer.status_code == 404
            assert answer.headers["X-ClickHouse-Exception-Code"] == "60"
            assert answer.headers["X-ClickHouse-Query-Id"] == "mine"
            assert answer.headers["X-ClickHouse-Timezone"] == "UTC"
            assert read(answer.content).startswith(b"Code: 60. DB::Exception: ")

    def test_a_ping_needs_nothing(self, ask):
        for options in ({}, {"path": "/ping"}, {"path": "/ping", "data": b"SELECT 1"}):
            answer = ask(None, headers={}, **options)
            assert (answer.status_code, answer.text) == (200, "Ok.\n")
        assert ask("SELECT 1", path="/ping", headers={}).text == "Ok.\n"
        for data in (b"", b"SELECT 1"):
            assert ask(None, headers={}, data=data).status_code == 403
        assert ask("SELECT 1", headers={}).status_code == 403
        assert ask(None, data=b"").headers["X-ClickHouse-Exception-Code"] == "62"

    def test_encodings_of_both_ways(self, app, ask):
        sql, rows = "SELECT repeat('x', 2000)", b"x" * 2000 + b"\n"
        key = {"X-ClickHouse-Key": PASSWORD}
        for encoding, unpacked in (("gzip", gzip.decompress), ("zstd", zstandard.decompress)):
            headers = {**key, "Accept-Encoding": encoding}
            for asked in ("1", "true", "0"):
                fields = {"query": sql, "enable_http_compression": asked}
                with TestClient(app, client=HERE).stream(
                    "GET", "/", params=fields, headers=headers
                ) as answer:
                    body = b"".join(answer.iter_raw())
                    packed = asked != "0"
                    assert answer.headers.get("Content-Encoding") == (encoding if packed else None)
                    assert (unpacked(body) if packed else body) == rows
        packed = gzip.compress(sql.encode())
        assert ask(None, data=packed, headers={**key, "Content-Encoding": "gzip"}).content == rows
        for yes in ("1", "true"):
            answer = ask(None, data=compression.pack(sql.encode()), decompress=yes, compress=yes)
            assert compression.unpack(answer.content, 9999) == rows
        assert ask(sql, compress="0", decompress="0").content == rows

    def test_a_form(self, ask):
        headers = {"X-ClickHouse-Key": PASSWORD, "Content-Type": "multipart/form-data; boundary=B"}
        data = b'--B\r\nContent-Disposition: form-data; name="param_a"\r\n\r\nx\r\n--B--\r\n'
        assert ask("SELECT {a:String}", data=data, headers=headers).text == "x\n"


class TestLimits:
    """Sizes and numbers."""

    def test_a_body_may_be_so_large(self, both):
        for limits, key, limit in (
            ({"max_body": 500}, WRITE_TOKEN, 500),
            ({"max_body": 500}, PASSWORD, 500),
            ({"max_body": 500, "max_reader_body": 900}, PASSWORD, 500),
            ({"max_body": 500, "max_reader_body": 200}, PASSWORD, 200),
            ({"max_body": 500, "max_reader_body": 200}, WRITE_TOKEN, 500),
        ):
            app = ClickHouseHTTP(both, password=PASSWORD, write_token=WRITE_TOKEN, **limits)
            asking = TestClient(app, client=HERE, headers={"X-ClickHouse-Key": key})
            sql = b"SELECT 1".ljust(limit)
            assert asking.post("/", content=sql).text == "1\n"
            assert asking.post("/", content=iter([sql[:9], sql[9:]])).text == "1\n"
            for content in (sql + b" ", iter([sql, b" "])):
                answer = asking.post("/", content=content)
                assert answer.status_code == 413
                assert answer.text == (
                    f"Code: 307. DB::Exception: the request is larger than {limit} bytes (TOO_MANY_BYTES)"
                )
            for content, fields, headers in (
                (gzip.compress(sql + b" "), {}, {"Content-Encoding": "gzip"}),
                (compression.pack(sql + b" "), {"decompress": "1"}, {}),
            ):
                assert (
                    asking.post("/", content=content, params=fields, headers=headers).status_code
                    == 413
                )
            app.close()

    def test_so_many_statements_run_at_once(self, both):
        app = ClickHouseHTTP(both, password=PASSWORD, max_queries=2)
        assert app._threads._max_workers == 2
        names = []
        app._threads.submit(lambda: names.append(threading.current_thread().name)).result()
        assert names[0].startswith("clickhouse-http")
        app.close()
        with pytest.raises(RuntimeError):
            app._threads.submit(print)

    def test_a_statement_runs_so_long_and_answers_with_so_much(self, both):
        app = ClickHouseHTTP(both, password=PASSWORD, timeout=7, max_result=2000)
        asking = TestClient(app, client=HERE, headers={"X-ClickHouse-Key": PASSWORD})
        sql = "SELECT getSetting('max_execution_time')"
        assert asking.get("/", params={"query": sql}).text == "7\n"
        for numbers, status in ((200, 200), (300, 500)):
            fields = {"query": f"SELECT number FROM numbers({numbers})"}
            assert asking.get("/", params=fields).status_code == status
        app.close()

    def test_limits_by_themselves(self, app, ask):
        sql = "SELECT getSetting('max_execution_time')"
        # A client's own holds for its statement alone, whatever became of it.
        for asked, status in ((sql, 200), ("SELECT throwIf(1)", 500)):
            assert ask(asked, max_execution_time="3").status_code == status
            assert ask(sql).text == "60\n"
        assert ask("SELECT getSetting('readonly')").text == "2\n"
        assert app._runner._readers._settings["max_result_bytes"] == str(256 * 2**20)
        assert (app._max_body, app._max_reader_body) == (256 * 2**20, 16 * 2**20)
        assert app._threads._max_workers == 4


async def test_it_serves_nothing_but_http(app):
    with pytest.raises(ValueError, match=r"^cannot serve websocket$"):
        await app({"type": "websocket"}, None, None)
