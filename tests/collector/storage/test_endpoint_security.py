"""A reader of the ClickHouse endpoint reads the store's tables and nothing else."""

import socket
import urllib.error
import urllib.parse
import urllib.request

import pytest
from endpoint_server import PASSWORD, WRITE_TOKEN, serve

from mast_trace_collector.clickhouse_http import ClickHouseHTTP
from mast_trace_collector.storage import Store

ACCESS_DENIED = "497"


def ask(endpoint, sql, *, key=PASSWORD, data=None, headers=None, **fields):
    """Send a query; returns (status, error number, body)."""
    url = f"http://{endpoint}/?{urllib.parse.urlencode({'query': sql, **fields})}"
    sent = {"X-ClickHouse-Key": key, **(headers or {})} if key is not None else headers or {}
    try:
        with urllib.request.urlopen(urllib.request.Request(url, data=data, headers=sent)) as answer:
            return answer.status, "", answer.read().decode("utf-8", "replace")
    except urllib.error.HTTPError as error:
        number = error.headers.get("X-ClickHouse-Exception-Code", "")
        return error.code, number, error.read().decode("utf-8", "replace")


@pytest.fixture(scope="module")
def embedded(engine):
    """A store for the whole module: readers change nothing."""
    engine.renew()
    with Store.open(engine.url) as store:
        yield store


@pytest.fixture(scope="module")
def endpoint(embedded):
    app = ClickHouseHTTP(embedded, password=PASSWORD, write_token=WRITE_TOKEN)
    with serve(app) as address:
        yield address
    app.close()


@pytest.fixture
def secret(tmp_path):
    """A file that no reader may see."""
    path = tmp_path / "secret.csv"
    path.write_text("hidden,text\n")
    return path


# Functions in each place of a statement are tried in test_endpoint_sweep.py.
READING_FILES = [
    "SELECT * FROM file('{path}')",
    "SELECT * FROM file('{path}', 'CSV', 'a String, b String')",
    "SELECT COLUMNS('p') APPLY file FROM (SELECT '{path}' AS p)",
    "WITH f AS (SELECT * FROM file('{path}')) SELECT * FROM f",
    "EXPLAIN SELECT file('{path}')",
    "EXPLAIN QUERY TREE SELECT file('{path}')",
    "DESCRIBE TABLE file('{path}')",
    "SELECT * FROM '{path}'",
    "SELECT * FROM `{path}`",
    "SELECT * FROM default.`{path}`",
    "SELECT * FROM `default`.`{path}`",
    'SELECT * FROM "d\\x65fault"."{path}"',
    "SELECT 'hidden' IN default.`{path}`",
    "DESCRIBE TABLE default.`{path}`",
    "SHOW CREATE TABLE default.`{path}`",
    "SELECT * FROM merge('default', '.*')",
    "SELECT * FROM loop(default, `{path}`)",
    "SELECT hasColumnInTable('default', '{path}', 'c1')",
    "SELECT * FROM viewExplain('EXPLAIN', '', (SELECT * FROM file('{path}')))",
    "SELECT * FROM eval('SELECT file(''{path}'')')",
    "SELECT 1 FORMAT Template SETTINGS format_template_row = '{path}'",
    "SELECT 1 SETTINGS format_template_row = '{path}' FORMAT Template",
    "SELECT 1 AS a FORMAT Protobuf SETTINGS format_schema = '{path}:M'",
    "SELECT * FROM format(Template, 'x') SETTINGS format_template_row = '{path}'",
    "SELECT * FROM executable('cat {path}', 'TSV', 'a String')",
    "SELECT * FROM filesystem('{path}')",
    "SELECT * FROM sqlite('{path}', 't')",
]


@pytest.mark.parametrize("template", READING_FILES)
def test_no_file_is_read(endpoint, secret, template):
    status, number, body = ask(endpoint, template.replace("{path}", str(secret)))
    assert "hidden" not in body
    assert status >= 400
    assert number in {ACCESS_DENIED, "60", "46", "62"}


def test_no_file_is_read_by_settings_or_formats_of_the_address(endpoint, secret):
    for fields in (
        {"format_template_row": str(secret), "default_format": "Template"},
        {"format_template_row": str(secret)},
        {"default_format": "Template"},
        {"format_schema": f"{secret}:M", "default_format": "Protobuf"},
        {"database": "default"},
        {"database": "default`.`x"},
        {"param_d": "default", "param_t": str(secret)},
    ):
        sql = (
            "SELECT * FROM {d:Identifier}.{t:Identifier}"
            if "param_d" in fields
            else f"SELECT * FROM `{secret}`"
        )
        _, number, body = ask(endpoint, sql, **fields)
        assert "hidden" not in body
        assert number in {ACCESS_DENIED, "60"}


@pytest.mark.parametrize(
    "template",
    [
        "SELECT 1 INTO OUTFILE '{path}'",
        "SELECT 1 INTO OUTFILE '{path}' FORMAT CSV",
        "INSERT INTO FUNCTION file('{path}') SELECT 1",
        "INSERT INTO TABLE FUNCTION file('{path}', 'CSV', 'a UInt8') VALUES (1)",
        "BACKUP DATABASE mast_trace TO File('{path}')",
        "EXPLAIN SELECT 1 INTO OUTFILE '{path}'",
    ],
)
def test_no_file_is_written(endpoint, tmp_path, template):
    path = tmp_path / "written"
    _, number, _ = ask(endpoint, template.replace("{path}", str(path)))
    assert number in {ACCESS_DENIED, "62"}
    assert not path.exists()


def test_no_variable_of_the_process_is_read(endpoint):
    local_variable = [{"a": "hidden"}]
    for sql in ("SELECT * FROM Python(local_variable)", "SELECT * FROM `python`(local_variable)"):
        _, number, body = ask(endpoint, sql)
        assert number == ACCESS_DENIED
        assert local_variable[0]["a"] not in body


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 1; SELECT 2",
        "SELECT 1; DROP TABLE otel_traces",
        "DROP TABLE otel_traces",
        "TRUNCATE TABLE otel_traces",
        "INSERT INTO mast_human_labels (TraceId) VALUES ('x')",
        "INSERT INTO mast_human_labels (TraceId) SELECT 'x'",
        "CREATE TABLE t (a UInt8) ENGINE = Memory",
        "CREATE TEMPORARY TABLE t (a UInt8)",
        "CREATE FUNCTION f AS x -> file(x)",
        "ALTER TABLE otel_traces DELETE WHERE 1",
        "DELETE FROM otel_traces WHERE 1",
        "OPTIMIZE TABLE otel_traces",
        "RENAME TABLE otel_traces TO x",
        "SET readonly = 0",
        "USE system",
        "SYSTEM STOP MERGES",
        "KILL QUERY WHERE 1",
        "GRANT ALL ON *.* TO x",
        "ATTACH DATABASE x ENGINE = Filesystem('/')",
        "DETACH TABLE otel_traces",
        "BEGIN TRANSACTION",
        "SELECT 1 SETTINGS readonly = 0",
        "EXPLAIN ANALYZE INSERT INTO mast_human_labels (TraceId) SELECT 'x'",
    ],
)
def test_nothing_is_changed(endpoint, embedded, sql):
    for options in ({"sql": sql}, {"sql": "", "data": sql.encode()}, {"sql": sql, "readonly": "0"}):
        status, _, _ = ask(endpoint, **options)
        assert status >= 400
    tables = embedded.query("SELECT count() AS n FROM system.tables WHERE database = 'mast_trace'")
    rows = embedded.query("SELECT count() AS n FROM mast_human_labels")
    assert rows == [{"n": 0}]
    assert tables[0]["n"] >= 11


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM url('http://127.0.0.1:1/', 'CSV', 'a String')",
        "SELECT * FROM s3('http://127.0.0.1:1/x', 'CSV')",
        "SELECT * FROM remote('127.0.0.1:1', system.one)",
        "SELECT * FROM cluster('default', system.one)",
        "SELECT * FROM postgresql('127.0.0.1:1', 'd', 't', 'u', 'p')",
        "SELECT * FROM mysql('127.0.0.1:1', 'd', 't', 'u', 'p')",
        "SELECT aiGenerate('x')",
    ],
)
def test_no_other_machine_is_asked(endpoint, sql):
    assert ask(endpoint, sql)[1] == ACCESS_DENIED


@pytest.mark.parametrize(
    ("sql", "answer"),
    [
        ("SELECT 'file(1); DROP TABLE default.x -- INTO OUTFILE'", None),
        ("SELECT /* file('x') */ 1 -- default.x", "1\n"),
        ("SELECT SpanAttributes['file'] FROM otel_traces", ""),
        ("SELECT 1 AS url, 2 AS file, 3 AS s3 FORMAT CSV", "1,2,3\n"),
        ("SELECT format('{}-{}', 'a', 'b')", "a-b\n"),
        ("WITH 1 AS x SELECT x UNION ALL SELECT x", "1\n1\n"),
        ("(SELECT 1)", "1\n"),
        ("SELECT count() FROM numbers(10) WHERE number IN (SELECT number FROM numbers(3))", "3\n"),
        ("EXISTS TABLE otel_traces", "1\n"),
        ("SELECT * FROM view(SELECT 7)", "7\n"),
        ("SELECT count() > 0 FROM system.columns WHERE database = 'mast_trace'", "1\n"),
        ("SELECT 1 SETTINGS max_execution_time = 5", "1\n"),
    ],
)
def test_honest_queries_pass(endpoint, sql, answer):
    status, _, body = ask(endpoint, sql)
    assert status == 200
    assert answer is None or body == answer


class TestLimits:
    """A request costs no more than allowed."""

    @pytest.mark.parametrize(("key", "status"), [("wrong", b"403"), (PASSWORD, b"413")])
    def test_a_body_that_is_refused_is_not_waited_for(self, embedded, key, status):
        """Without a key, not even its first byte; with one, no more than a reader may send."""
        app = ClickHouseHTTP(embedded, password=PASSWORD, max_reader_body=1000)
        with serve(app) as address:
            host, port = address.split(":")
            head = (
                f"POST / HTTP/1.1\r\nHost: {address}\r\nX-ClickHouse-Key: {key}\r\n"
                f"Content-Length: {10**9}\r\n\r\n"
            )
            with socket.create_connection((host, int(port)), timeout=30) as connection:
                connection.sendall(head.encode() + (b"x" * 1001 if key == PASSWORD else b""))
                answer = connection.recv(100)
        app.close()
        assert answer.split()[1] == status

    def test_names_that_are_no_settings_are_refused(self, endpoint):
        assert ask(endpoint, "SELECT 1", **{"x = 1; DROP TABLE t": "1"})[1] == ACCESS_DENIED
        assert ask(endpoint, "SELECT 1", no_such_setting="1")[1] == ACCESS_DENIED
