"""Statements that fail half-way leave nothing behind for whoever asks next.

The embedded engine keeps what a statement wrote before it failed, and would begin the connection's next
answer with it.
"""

import pytest
from endpoint_sweep import OURS, THEIRS, World
from stores import SERVER

from mast_trace.exceptions import StorageError
from mast_trace_collector.clickhouse_http import rendering as native
from mast_trace_collector.clickhouse_http.engine import Handle, Handles
from mast_trace_collector.clickhouse_http.errors import EngineError
from mast_trace_collector.clickhouse_http.runner import Rights, Runner
from mast_trace_collector.clickhouse_http.statement import Statement

HALF_WAY = "SELECT number, throwIf(number = 900000) FROM numbers(1000000)"
MUCH = "SELECT Project, number FROM otel_traces AS t CROSS JOIN numbers(300000) AS n"
TOO_MUCH = 396
FORMATS = ["TabSeparated", "JSON", "JSONEachRow", "Native", "Parquet", "RowBinary", "CSVWithNames"]


@pytest.fixture(scope="module")
def world(both):
    """Two projects, and a reader's bound that is soon reached."""
    runner = Runner(both, timeout=20, max_result=100_000)
    yield World(both, runner, both.embedded_path, both.embedded_path)
    runner.close()


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("protocol", [0, native.PROTOCOL_WITH_BLOCK_INFO])
def test_no_reader_gets_what_another_ones_statement_wrote(world, name, protocol):
    failed = world.ask(MUCH, default_format=name, protocol=protocol)
    assert failed.code == TOO_MUCH
    assert [world.ask("SELECT 7", project=project).body for project in (THEIRS, None, OURS)] == [
        "7\n"
    ] * 3


def test_no_reader_gets_what_the_operators_statement_wrote(world):
    runner = world.runner
    with pytest.raises(EngineError):
        runner.run(Statement(sql=HALF_WAY, default_format="TSV"), Rights(writes=True))
    again = Statement(sql="SELECT 7", default_format="TSV")
    assert runner.run(again, Rights(writes=True)).body == b"7\n"
    assert world.ask(MUCH, project=None).code == TOO_MUCH
    assert world.ask("SELECT 7").body == "7\n"


@pytest.mark.parametrize("name", FORMATS)
def test_a_connection_whose_statement_failed_is_lent_to_nobody(world, name):
    handles = Handles(world.store.embedded_path, {})
    try:
        for way in (Handle.run, Handle.blocks):
            with handles.borrow() as handle:
                with pytest.raises(EngineError, match="throwIf"):
                    way(handle, HALF_WAY, name)
                assert handle.run("SELECT 7", "TabSeparated").body == b"7\n"
            with handles.borrow() as other:
                assert other is not handle
            with handles.borrow() as same:
                assert same is other
    finally:
        handles.close()


def test_connections_are_closed_with_the_endpoint_once_nobody_has_them(world):
    handles = Handles(world.store.embedded_path, {})
    with handles.borrow() as lent:
        with handles.borrow() as idle:
            pass
        handles.close()
        with pytest.raises(EngineError):
            idle.run("SELECT 7", "TabSeparated")
        assert lent.run("SELECT 7", "TabSeparated").body == b"7\n"
    with pytest.raises(EngineError):
        lent.run("SELECT 7", "TabSeparated")


@pytest.mark.skipif(bool(SERVER), reason="about the embedded engine, while a server is tested")
@pytest.mark.parametrize("way", ["query", "command"])
def test_a_query_that_fails_changes_no_other_answer(embedded, way):
    for sql in (HALF_WAY, "SELECT throwIf(number = 900000) FROM numbers(1000000)"):
        with pytest.raises(StorageError, match="throwIf"):
            getattr(embedded, way)(sql)
        assert embedded.query("SELECT 7 AS a") == [{"a": 7}]
        assert embedded.command("SELECT 7") == 7
