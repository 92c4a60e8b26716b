"""`project-reader.sql`: the user of one project reads that project, on a server, and nothing in a cluster."""

import os
import re
from pathlib import Path

import pytest
from endpoint_sweep import ENDLESS, columns, fill, ways_to_read
from otlp_requests import OTHER, TRACE, evaluation, log_request
from server_users import read_as, statements, store_with_users

from mast_trace.exceptions import ConfigurationError, StorageError
from mast_trace_collector.storage.grants import (
    OPEN_SYSTEM_TABLES,
    policies_hold,
    project_reader,
)
from mast_trace_collector.storage.log_writer import LogWriter
from mast_trace_collector.storage.readers import DECLARED, LOCAL, READABLE, Rows, declared
from mast_trace_collector.storage.search_index import INDEX, add_search_index

FILE = Path(__file__).parents[3] / "examples/production/clickhouse/project-reader.sql"
USER, OURS, THEIRS = "team_a", "team-a", "team-omega"
DENIED, ON_DISTRIBUTED = 497, 182
# Tables of the server that this engine cannot read at all, whoever asks: no Keeper, no certificate, no profile.
UNAVAILABLE = {107, 139, 302, 1001}
WAYS = (
    "SELECT * FROM remote('127.0.0.1', {database}, {table})",
    "SELECT * FROM cluster('default', {database}, {table})",
    "SELECT * FROM loop({database}, {table})",
    "SELECT * FROM mergeTreeIndex({database}, {table})",
    "SELECT * FROM mergeTreeIndex({database}, {table}, with_minmax = 1)",
    "SELECT * FROM mergeTreeTextIndex({database}, {table}, " + INDEX + ")",
    "SELECT * FROM mergeTreeAnalyzeIndexes({database}, {table})",
    "SELECT * FROM merge('.*', '^{table}$')",
    "SELECT (SELECT groupArray(toString(tuple(*))) FROM {database}.{table})",
    "SELECT 1 AS a WHERE '" + THEIRS + "' IN (SELECT toString(*) FROM {database}.{table})",
    "SELECT * FROM {database}.{table} LIMIT 3 UNION ALL SELECT * FROM {database}.{table} LIMIT 3",
)


@pytest.fixture(scope="module", params=[0, 1], ids=["server", "cluster"])
def world(request, engine, tmp_path_factory):
    """Rows of two projects in every table, texts of the other in tables of the server, and the user."""
    engine.close()
    with store_with_users(
        tmp_path_factory.mktemp("reader") / "data", FILE.read_text(), shards=request.param
    ) as store:
        if not request.param:
            add_search_index(store)
        for table in stored(store):
            for project in (OURS, THEIRS):
                fill(store, table, project, 3, f"said-by-{project}")
        for project, trace in ((OURS, TRACE), (THEIRS, OTHER)):
            said = log_request(evaluation(trace), resource={"mast.project": project})
            LogWriter(store).write([said], token=project)
        log = "CREATE TABLE system.query_log (query String) ENGINE = MergeTree ORDER BY query"
        store.command(log, use_database=False)
        store.insert("system.query_log", [{"query": f"SELECT '{THEIRS}'"}])
        traces = f"otel_traces{LOCAL if request.param else ''}"
        store.command(f"ALTER TABLE {traces} DELETE WHERE TraceId = '{THEIRS}'")
        yield store


def stored(store):
    """Tables with rows of their own."""
    rows = store.query(
        "SELECT name FROM system.tables WHERE database = currentDatabase() "
        "AND engine LIKE '%MergeTree' AND name NOT LIKE 'mast_schema_migrations%'"
    )
    return [row["name"] for row in rows]


def objects(store):
    """Every object of the database, by its engine."""
    rows = store.query("SELECT name, engine FROM system.tables WHERE database = currentDatabase()")
    return {row["name"]: row["engine"] for row in rows}


def is_cluster(store):
    return "Distributed" in objects(store).values()


def test_the_committed_file_is_what_the_declarations_give():
    """A declaration changes in the migration; MAST_TRACE_WRITE_GOLDEN=1 writes the file anew."""
    if os.environ.get("MAST_TRACE_WRITE_GOLDEN"):
        FILE.write_text(project_reader())
    assert FILE.read_text() == project_reader()


def test_every_object_of_the_database_is_declared(world):
    """An object without a declaration is granted to nobody, and this test names it."""
    found = {name.removesuffix(LOCAL) if is_cluster(world) else name for name in objects(world)}
    assert found == DECLARED.keys()


def test_declarations_fit_their_objects(world):
    known = objects(world)
    with_project = {row["table"] for row in columns(world) if row["column"] == "Project"}
    for name, rows in DECLARED.items():
        if rows in {Rows.OF_PROJECT, Rows.OF_VIEW}:
            assert name in with_project, name
        assert (rows is Rows.OF_VIEW) == (known[name] == "View"), name
        if known[name] in {"MaterializedView", "Null"}:
            assert rows is Rows.NONE, name


def test_a_declaration_is_read_where_a_table_is_defined():
    made = "-- reader: {}\nCREATE TABLE IF NOT EXISTS {{database}}.{}{{local}} (\n"
    again = "CREATE OR REPLACE VIEW {database}.a AS SELECT 1;"
    assert declared([made.format("project", "a"), again, made.format("none", "b")]) == {
        "a": Rows.OF_PROJECT,
        "b": Rows.NONE,
    }
    assert declared([again, "-- reader: all\n\n" + again]) == {}
    with pytest.raises(ValueError, match="a is declared as project and as all"):
        declared([made.format("project", "a"), made.format("all", "a")])
    with pytest.raises(ValueError, match="everything"):
        declared([made.format("everything", "a")])


def test_a_cluster_ends_the_file_before_a_user_is_made(world):
    guard, *_ = statements(FILE.read_text())
    if not is_cluster(world):
        assert world.command(guard, use_database=False) == 0
        return
    with pytest.raises(StorageError, match="spread over a cluster"):
        world.command(guard, use_database=False)


@pytest.mark.parametrize(
    ("version", "holds"),
    [
        ("25.8.29.31", 0),
        ("26.3.9.1", 0),
        ("26.3.33.100", 0),
        ("26.3.33.101", 1),
        ("26.3.40.2.altinitystable", 1),
        ("26.4.1.1", 0),
        ("26.8.99.1", 0),
        ("26.9.1.1", 1),
        ("27.1.1.1", 1),
    ],
)
def test_a_version_with_ways_past_policies_ends_the_file(world, version, holds):
    """This engine's own version is tried by all the other tests: it has none."""
    assert world.query(f"SELECT {policies_hold(repr(version))} AS h") == [{"h": holds}]
    guard = statements(FILE.read_text())[1]
    assert world.command(guard, use_database=False) == 0
    other = guard.replace("version()", repr(version))
    if holds:
        assert world.command(other, use_database=False) == 0
        return
    with pytest.raises(StorageError, match="do not hold in this version"):
        world.command(other, use_database=False)


def test_nothing_is_granted_before_guards_and_policies():
    verbs = [re.match(r"(\w+ \w+)", each)[1] for each in statements(FILE.read_text())]
    assert list(dict.fromkeys(verbs)) == [
        "SELECT throwIf",
        "CREATE USER",
        "CREATE ROW",
        "REVOKE SELECT",
        "GRANT SELECT",
    ]


def test_names_that_cannot_stand_in_sql_are_refused():
    with pytest.raises(ConfigurationError):
        project_reader(user="a; DROP")
    assert r"USING Project = 'it\'s' TO b;" in project_reader("b", "it's")


def test_every_object_shows_own_rows_or_refuses(world):
    """Every column of every object of the database, in one of the places that rotate."""
    told, refused = set(), set()
    ours = [row for row in columns(world) if row["database"] == world.database]
    for number, row in enumerate(ours):
        ways = ways_to_read(**row)
        sql = ways[0 if row["column"] in {"Project", "TraceId"} else number % len(ways)]
        answer = read_as(world, USER, sql)
        if isinstance(answer, int):
            refused.add((row["table"], answer))
        elif OURS in answer:
            told.add(row["table"])
        assert THEIRS not in str(answer), sql
    assert THEIRS in read_as(
        world, "default", ways_to_read("mast_trace", "mast_runs", "Project")[0]
    )
    if is_cluster(world):
        assert told == set()
        assert {DENIED, ON_DISTRIBUTED} <= {code for _, code in refused}
        return
    filtered = {name for name, rows in READABLE.items() if rows is not Rows.ALL}
    assert told == filtered
    assert {table for table, code in refused if code == DENIED} == DECLARED.keys() - READABLE.keys()


@pytest.mark.parametrize("way", WAYS, ids=range(len(WAYS)))
def test_no_way_round_shows_rows_of_others(world, way):
    told = ""
    for name in objects(world):
        answer = read_as(world, USER, way.format(database=world.database, table=name))
        assert THEIRS not in str(answer), name
        assert "said-by-team-omega" not in str(answer), name
        told += str(answer)
    assert told


def test_counts_are_of_own_rows(world):
    for table, rows in READABLE.items():
        sql = f"SELECT count() AS n FROM {world.database}.{table}"
        answer = read_as(world, USER, sql)
        if is_cluster(world):
            assert answer in {DENIED, ON_DISTRIBUTED} or rows is Rows.ALL, table
        elif rows in {Rows.OF_PROJECT, Rows.OF_VIEW}:
            own = world.query(f"{sql} WHERE Project = '{OURS}'")
            assert answer == str(own), table
            assert own != world.query(sql), table


def test_tables_of_the_server_name_no_other_project(world):
    """Also on a server on which everybody may read them, as in this engine."""
    rows = world.query(
        "SELECT database, name FROM system.tables "
        "WHERE database IN ('system', 'information_schema') AND name NOT IN {endless:Array(String)}",
        {"endless": sorted(ENDLESS)},
    )
    shown = set()
    for row in rows:
        answer = read_as(world, USER, f"SELECT * FROM {row['database']}.{row['name']} LIMIT 5000")
        if isinstance(answer, int):
            assert answer in {DENIED, *UNAVAILABLE}, row
        elif answer != "[]":
            shown.add((row["database"], row["name"]))
        assert THEIRS not in str(answer), row
    assert {name for database, name in shown if database == "system"} <= set(OPEN_SYSTEM_TABLES)
    assert {("system", "tables"), ("system", "columns")} <= shown
    for table in ("query_log", "mutations"):
        assert THEIRS in read_as(world, "default", f"SELECT * FROM system.{table}")


def test_a_client_finds_its_way(world):
    """The user sees the names of the tables that it may read, as Grafana and other clients ask for them."""
    names = f"SELECT name FROM system.tables WHERE database = '{world.database}' ORDER BY name"
    listed = read_as(world, USER, names)
    assert listed == str([{"name": name} for name in sorted(READABLE)])
    assert read_as(world, USER, "SELECT 1 AS one") == "[{'one': 1}]"
    assert read_as(world, USER, "SELECT count() AS n FROM numbers(3)") == "[{'n': 3}]"
