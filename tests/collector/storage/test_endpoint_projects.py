"""A reader with a project's key sees that project's rows, in any form of statement."""

import clickhouse_connect
import pytest
from endpoint_server import PASSWORD, serve
from otlp_requests import OTHER, TRACE
from test_endpoint_security import ask

from mast_trace_collector.clickhouse_http import ClickHouseHTTP
from mast_trace_collector.security import ProjectKeys, Right, new_key

READONLY = "164"


@pytest.fixture(scope="module")
def shared(of_key):
    """host:port of an endpoint that knows the key."""
    return of_key[0]


@pytest.fixture(scope="module")
def key(of_key):
    """A key of the project that has the first of the runs."""
    return of_key[1]


def test_every_table_has_only_our_rows(shared, key, both):
    rows = both.query(
        "SELECT DISTINCT table FROM system.columns WHERE database = currentDatabase() "
        "AND name = 'TraceId' AND table NOT LIKE '%\\_mv'"
    )
    tables = {row["table"] for row in rows} - {"mast_tombstones"}
    assert len(tables) >= 19
    for table in tables:
        sql = f"SELECT DISTINCT TraceId FROM {table} ORDER BY 1"
        assert ask(shared, sql)[2] == f"{TRACE}\n{OTHER}\n", table
        assert ask(shared, sql, key=key)[2] == f"{TRACE}\n", table


def test_ids_of_erased_runs_are_for_nobody_to_read(shared, key):
    for who in ({}, {"key": key}):
        assert ask(shared, "SELECT count() FROM mast_tombstones", **who)[0] != 200


ROUNDABOUT = [
    "SELECT DISTINCT Project FROM mast_trace.otel_traces",
    "SELECT DISTINCT p FROM (SELECT Project AS p FROM otel_traces)",
    "WITH all AS (SELECT Project FROM otel_traces) SELECT DISTINCT Project FROM all",
    "SELECT DISTINCT t.Project FROM `otel_traces` AS t",
    "SELECT DISTINCT Project FROM mast_verdicts FINAL",
    "SELECT DISTINCT a.Project FROM otel_traces AS a JOIN mast_runs AS b ON 1 = 1",
    "SELECT DISTINCT b.Project FROM mast_runs AS a CROSS JOIN mast_verdicts AS b",
    "SELECT DISTINCT Project FROM otel_traces PREWHERE 1",
    "SELECT DISTINCT Project FROM otel_traces WHERE 1 OR Project = 'theirs-canary'",
    "SELECT DISTINCT Project FROM view(SELECT Project FROM otel_traces)",
    "SELECT any(Project) FROM mast_runs",
    "SELECT Project FROM otel_traces UNION DISTINCT SELECT Project FROM mast_human_labels",
    "SELECT arrayJoin((SELECT groupUniqArray(Project) FROM otel_traces))",
    "SELECT DISTINCT Project FROM {table:Identifier}",
]


@pytest.mark.parametrize("sql", ROUNDABOUT)
def test_no_way_of_asking_leads_around_it(shared, key, sql):
    status, _, body = ask(shared, sql, key=key, param_table="otel_traces")
    assert "theirs" not in body
    assert (status, body) == (200, "ours\n") or status == 403


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT Project FROM otel_traces SETTINGS additional_table_filters = {}",
        "SELECT * FROM (SELECT Project FROM otel_traces SETTINGS additional_table_filters = {})",
        "SELECT 'x' UNION ALL (SELECT Project FROM otel_traces SETTINGS additional_table_filters = {})",
        "SELECT Project FROM otel_traces SETTINGS readonly = 0",
        "SET additional_table_filters = {}",
        "SELECT * FROM merge('mast_trace', 'otel_traces')",
        "SELECT * FROM mergeTreeIndex('mast_trace', 'otel_traces')",
        "SELECT * FROM loop(mast_trace.otel_traces) LIMIT 9",
        "SELECT * FROM remote('127.0.0.1', mast_trace.otel_traces)",
    ],
)
def test_the_condition_cannot_be_taken_off(shared, key, sql):
    status, number, body = ask(shared, sql, key=key)
    assert "theirs" not in body
    assert status >= 400 or body == "ours\nours\n"
    assert number in {"", READONLY, "497"}


def test_settings_of_the_address_neither_lift_it_nor_are_lost(shared, key):
    sql = "SELECT DISTINCT Project FROM mast_runs"
    for fields in ({"additional_table_filters": "{}"}, {"log_comment": "theirs-canary"}):
        assert ask(shared, sql, key=key, **fields)[1] == "497"
    for fields in ({"readonly": "0"}, {"readonly": "2"}):
        assert ask(shared, sql, key=key, **fields)[2] == "ours\n"
    answer = ask(shared, "SELECT number FROM numbers(9)", key=key, limit="2")
    assert answer[2] == "0\n1\n"
    # And the next reader of everything reads everything.
    assert ask(shared, "SELECT count() FROM mast_runs")[2] == "2\n"


def test_nothing_is_learnt_from_the_systems_tables(shared, key):
    for table in ("parts_columns", "processes", "query_log", "mutations", "part_log", "disks"):
        assert ask(shared, f"SELECT * FROM system.{table}", key=key)[1] == "497"
    assert ask(shared, "SELECT * FROM system.parts", key=key)[:2] == (200, "")
    assert ask(shared, "SHOW PROCESSLIST", key=key)[1] == "497"
    assert ask(shared, "SHOW TABLES", key=key)[2].count("\n") > 8


def test_a_projects_key_does_not_write(shared, key, both):
    for sql in ("DROP TABLE otel_traces", "INSERT INTO mast_human_labels (TraceId) VALUES ('x')"):
        assert ask(shared, sql, key=key, data=b"")[1] == "497"
    assert both.query("SELECT count() AS n FROM otel_traces") == [{"n": 3}]


def test_the_usual_client_works_with_it(shared, key):
    host, port = shared.split(":")
    client = clickhouse_connect.get_client(
        host=host, port=int(port), username="grafana", password=key, database="mast_trace"
    )
    assert client.query("SELECT DISTINCT Project FROM otel_traces").result_rows == [("ours",)]
    empty = client.query("SELECT Project FROM otel_traces WHERE Project = 'theirs-canary'")
    assert (empty.result_rows, empty.column_names) == ([], ("Project",))
    client.close()


def test_a_key_that_only_writes_does_not_read(tmp_path, both):
    keys = {right: new_key("ours", frozenset({right})) for right in Right}
    (tmp_path / "keys").write_text("\n".join(line for _, line in keys.values()))
    app = ClickHouseHTTP(both, password=PASSWORD, keys=ProjectKeys(tmp_path / "keys"))
    with serve(app) as address:
        for right, (key, _) in keys.items():
            status, number, body = ask(address, "SELECT 1", key=key)
            if right is Right.READ:
                assert (status, body) == (200, "1\n")
            else:
                assert (status, number) == (403, "497")
                assert "lacks the right to read" in body
        status, number, _ = ask(address, "SELECT 1", key="mt_unknown")
        assert (status, number) == (403, "516")
    app.close()
