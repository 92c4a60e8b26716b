"""All that is set up when the endpoint opens, in one test that opens it itself.

Tests of other modules share an endpoint, so that no one of them sees how it is set up.
"""

import pytest
from endpoint_sweep import OURS, THEIRS, World
from otlp_requests import two_runs

from mast_trace_collector.clickhouse_http.confinement import Confinement
from mast_trace_collector.clickhouse_http.rendering import HELLO, PROTOCOL_WITH_BLOCK_INFO
from mast_trace_collector.clickhouse_http.runner import Runner
from mast_trace_collector.storage import Store, migrate
from mast_trace_collector.storage.readers import READABLE

ANSWERED = (
    ("SELECT upper('a'), UPPER('b'), uPPer('c')", "A\tB\tC\n"),
    (("SELECT count(), COUNT(1), sumIf(number, 1), Sum(number), sumMerge(s) FROM "
     "(SELECT number, s FROM numbers(3) AS n CROSS JOIN (SELECT sumState(1) AS s) AS m)"), "3\t3\t3\t3\t3\n"),
    ("SELECT arrayMap(upper, ['a']), arrayMap(x -> x + 1, [1])", "['A']\t[2]\n"),
    ("SELECT CASE WHEN 1 THEN 'a' ELSE 'b' END, CAST(1, 'String'), 1 IN (1, 2), EXISTS (SELECT 1)", "a\t1\t1\t1\n"),
    ("SELECT value IS NULL FROM system.settings WHERE name = 'max_threads'", "0\n"),
    ("SELECT count() FROM system.settings WHERE name = 'readonly'", "0\n"),
    ("SELECT name, database, total_rows, uuid FROM system.tables WHERE name = 'mast_runs'",
     "mast_runs\tmast_trace\t\\N\t00000000-0000-0000-0000-000000000000\n"),
    ("SELECT DISTINCT table FROM system.columns WHERE name = 'Failed'", "mast_runs\n"),
    ("SELECT table_name FROM information_schema.tables WHERE table_name LIKE 'mast_v%'", "mast_verdicts\n"),
    ("SELECT name FROM system.databases", "mast_trace\n"),
    ("SELECT dummy FROM system.one", "0\n"),
    ("SELECT name, changed, length(value) < 9 FROM system.settings WHERE name = 'max_execution_time'", "max_execution_time\t1\t1\n"),
    ("SELECT getSetting('max_execution_time')", "20\n"),
    ("SELECT getSetting('readonly')", "2\n"),
    ("SELECT currentDatabase()", "mast_trace\n"),
)  # fmt: skip
REFUSED = (
    ("SELECT file('x')", "the function file is not allowed"),
    ("SELECT FILE('x')", "the function FILE is not allowed"),
    ("SELECT fileIf('x', 1)", "the function fileIf is not allowed"),
    ("SELECT arrayMap(hostname, [1])", "the name hostname is not allowed"),
    ("SELECT arrayMap(HOSTNAME, [1])", "the name HOSTNAME is not allowed"),
    ("SELECT arrayMap(anyIfFile, [1])", "Unknown expression"),
    ("SELECT s3 FROM otel_traces", "the name s3 is not allowed"),
    ("SELECT url FROM otel_traces", "the name url is not allowed"),
    ("SELECT * FROM s3('x')", "the table function s3 is not allowed"),
    ("SELECT * FROM mast_otlp_inlet", "the table mast_otlp_inlet is not allowed"),
    ("SELECT * FROM mast_readers.mast_proof", "the table mast_readers.mast_proof is not allowed"),
    ("SELECT * FROM mast_catalogue.x", "the table mast_catalogue.x is not allowed"),
    ("SELECT * FROM default.x", "the table default.x is not allowed"),
    ("SELECT default.x FROM otel_traces", "the table default.x is not allowed"),
    ("SELECT mast_otlp_inlet FROM otel_traces", "the table mast_otlp_inlet is not allowed"),
)


def databases(store):
    return {row["name"] for row in store.query("SELECT name FROM system.databases")}


@pytest.mark.timeout(60)
def test_an_endpoint_that_opens_answers_and_refuses(folder):
    with Store.open(f"chdb://{folder}") as store:
        migrate(store)
        two_runs(store, projects=(OURS, THEIRS))
        before = databases(store)
        runner = Runner(store, timeout=20, max_result=10_000)
        world = World(store, runner, folder, folder, [str(folder)], [THEIRS])
        try:
            for project in (OURS, None, OURS, THEIRS):
                for sql, expected in ANSWERED:
                    assert world.ask(sql, project=project).body == expected, sql
                for sql, words in REFUSED:
                    answer = world.ask(sql, project=project)
                    assert answer.code, sql
                    assert words in answer.body, sql
                whole = world.ask(
                    "SELECT DISTINCT Project FROM mast_runs ORDER BY 1", project=project
                )
                assert whole.body == (f"{project}\n" if project else f"{OURS}\n{THEIRS}\n")
                parts = world.ask("SELECT count() > 0 FROM system.parts", project=project)
                assert parts.body == ("0\n" if project else "1\n")
            shown = world.ask("SHOW TABLES").body.split()
            assert shown == sorted(READABLE)
            assert world.ask("SELECT number FROM numbers(9999)").code == 396
            version = store.query("SELECT version() AS v")[0]["v"]
            greeting = world.ask(HELLO, default_format="Native", protocol=PROTOCOL_WITH_BLOCK_INFO)
            assert version in greeting.body
            # Where nobody says which database is meant, it is the store's.
            with runner._confinement.view("SELECT count() AS n FROM mast_runs", None) as view:
                assert store.query(f"SELECT * FROM {view}") == [{"n": 2}]
            # A name that is new counts after a while, which tests do not wait for: it is no table of ours.
            assert world.ask("SELECT * FROM nothing").code == 60
            assert {"mast_readers", "mast_catalogue"} <= databases(store)
        finally:
            runner.close()
        assert databases(store) == before


def test_it_needs_no_tables_and_lets_go_of_the_engine_in_any_case(folder, monkeypatch):
    with Store.open(f"chdb://{folder}") as store:
        confinement = Confinement(store.embedded_path, store.database, {})
        monkeypatch.setattr(
            "mast_trace_collector.clickhouse_http.confinement.CATALOGUE", "no name of a database"
        )
        confinement.close()
        assert confinement._handles._closed
