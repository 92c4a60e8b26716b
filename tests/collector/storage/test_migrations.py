"""The schema and how it comes to be."""

import hashlib
import json
import os
import re
import subprocess
import sys
from contextlib import nullcontext
from itertools import permutations
from pathlib import Path

import pytest
from endpoint_server import WRITE_TOKEN
from otlp_requests import TRACE, agent_span, request, two_runs
from server_users import store_with_users

from mast_trace import semconv
from mast_trace.exceptions import ConfigurationError, SchemaMismatch, StorageError
from mast_trace.trajectory import vocabulary
from mast_trace_collector.storage import SchemaOptions, Store, check_schema, migrate, render
from mast_trace_collector.storage import schema_templates as templates
from mast_trace_collector.storage.migrations import (
    Migration,
    _settled,
    backfill_runs,
    migrations,
    options_of,
)
from mast_trace_collector.storage.readers import DECLARED
from mast_trace_collector.storage.span_writer import SpanWriter
from mast_trace_collector.storage.store import error_code

EXPORTER_COLUMNS = [
    ("Timestamp", "DateTime64(9)"),
    ("TraceId", "String"),
    ("SpanId", "String"),
    ("ParentSpanId", "String"),
    ("TraceState", "String"),
    ("SpanName", "LowCardinality(String)"),
    ("SpanKind", "LowCardinality(String)"),
    ("ServiceName", "LowCardinality(String)"),
    ("ResourceAttributes", "Map(LowCardinality(String), String)"),
    ("ScopeName", "String"),
    ("ScopeVersion", "String"),
    ("SpanAttributes", "Map(LowCardinality(String), String)"),
    ("Duration", "UInt64"),
    ("StatusCode", "LowCardinality(String)"),
    ("StatusMessage", "String"),
    ("Events.Timestamp", "Array(DateTime64(9))"),
    ("Events.Name", "Array(LowCardinality(String))"),
    ("Events.Attributes", "Array(Map(LowCardinality(String), String))"),
    ("Links.TraceId", "Array(String)"),
    ("Links.SpanId", "Array(String)"),
    ("Links.TraceState", "Array(String)"),
    ("Links.Attributes", "Array(Map(LowCardinality(String), String))"),
]
"""The tables and rows of the OpenTelemetry Collector's ClickHouse exporter, in its order."""

CLUSTER = SchemaOptions(
    database="traces",
    cluster="main",
    replicated=True,
    distributed=True,
    ttl_days=30,
    storage_policy="hot_cold",
)


SCHEMA = Path(templates.__file__).parent / "schema"
EARLIER = [
    Migration(int(file.name[:3]), file.stem[4:], file.read_text())
    for file in sorted(Path(__file__).with_name("earlier_schema").iterdir())
]
"""Versions of which databases were made before there was a baseline; 0 made the table of versions."""
UPGRADES = [each.version for each in migrations()]
BETWEEN = [pytest.param(each, marks=pytest.mark.long) for each in UPGRADES[:-2]]
"""Versions between the oldest and the newest that are carried over: all of them take minutes."""
KEPT = ("otel_traces", "otel_traces_trace_id_ts", "mast_latest_verdicts", "mast_human_labels")
DEFINED = """
    SELECT t.name AS name, replaceAll(if(t.engine = 'Distributed', concat(t.engine_full, toString(c.columns)),
        t.create_table_query), {database:String}, '') AS definition
    FROM system.tables AS t LEFT JOIN (SELECT table, arraySort(groupArray((name, type))) AS columns
        FROM system.columns WHERE database = {database:String} GROUP BY table) AS c ON c.table = t.name
    WHERE t.database = {database:String} ORDER BY name"""
"""CREATE of each table, with columns, indexes, projections, engine and settings. A Distributed one stores nothing: order,
codecs and defaults of its columns, which migrations left as they were, have no effect."""


def make_version(store, last, options):
    """Make the tables of a version by all versions up to it."""
    for migration in (*EARLIER, *migrations()):
        if migration.version <= last:
            for statement in (*migration.statements(options), migration.record(options)):
                store.command(statement.replace("ON CLUSTER main", ""), use_database=False)


def test_new_tables_are_those_that_the_migrations_make(folder):
    """Replication and the cluster itself are in every definition alike, see below; they need a Keeper."""
    with store_with_users(folder, shards=1) as store:
        for options in ({"ttl_days": 9}, {"cluster": "main", "distributed": True}):
            made, migrated = [f"{how}_{len(options)}" for how in ("made", "migrated")]
            for statement in render(SchemaOptions(database=made, **options)):
                store.command(statement.replace("ON CLUSTER main", ""), use_database=False)
            make_version(store, UPGRADES[-1], SchemaOptions(database=migrated, **options))
            found, expected = [store.query(DEFINED, {"database": d}) for d in (made, migrated)]
            assert found == expected


@pytest.mark.parametrize("previous", [28, *BETWEEN, UPGRADES[-2]])
def test_what_an_earlier_version_stored_is_there_after_the_upgrade(folder, previous):
    with Store.open(f"chdb://{folder}") as store:
        make_version(store, previous, SchemaOptions())
        SpanWriter(store).write([request(agent_span(1), agent_span(2, parent=1))], token="t")
        store.insert("mast_verdicts", [{"TraceId": TRACE, "Status": "ok", "Outcome": "failure"}])
        store.insert("mast_human_labels", [{"TraceId": TRACE, "Annotator": "ann"}])
        before = {table: store.query(f"SELECT * FROM {table}") for table in (*KEPT, "mast_runs")}
        assert migrate(store) == [version for version in UPGRADES if version > previous]
        check_schema(store)
        for table, rows in before.items():
            columns = ", ".join(f"`{name}`" for name in rows[0])
            assert store.query(f"SELECT {columns} FROM {table}") == rows, table
        two_runs(store, projects=("later", "later"))
        assert store.query("SELECT count() AS n FROM mast_evaluations") == [{"n": 2}]


@pytest.mark.parametrize(("last", "lacking"), [(27, 28), (28, 12)])
def test_a_database_that_is_too_old_is_refused_and_left_alone(folder, last, lacking):
    """Version 12 is recorded where all stored runs were counted exactly."""
    with Store.open(f"chdb://{folder}") as store:
        make_version(store, last, SchemaOptions())
        forget = f"ALTER TABLE mast_schema_migrations DELETE WHERE Version = {lacking}"
        store.command(forget, settings={"mutations_sync": 2})
        before = store.query(DEFINED, {"database": store.database})
        with pytest.raises(SchemaMismatch, match=rf"lacks version {lacking}: .* version 28 "):
            migrate(store)
        assert store.query(DEFINED, {"database": store.database}) == before


def test_an_interrupted_start_goes_on(folder):
    """No version is recorded before the end, and every statement may be run again."""
    statements = render(SchemaOptions())
    with Store.open(f"chdb://{folder}") as store:
        for done in (0, 1, 2, len(statements) // 2, len(statements) - 1):
            for statement in statements[:done]:
                store.command(statement, use_database=False)
            with pytest.raises(SchemaMismatch, match="run `mast-trace migrate`"):
                check_schema(store)
        assert migrate(store) == [each.version for each in (*EARLIER[1:], *migrations())]
        assert migrate(store) == []


def test_many_processes_may_migrate_at_once(endpoint):
    url = f"http://tests:{WRITE_TOKEN}@{endpoint}/fresh"
    command = [sys.executable, "-m", "mast_trace_dashboards", "migrate", "--json", "--url", url]
    started = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    for process in started:
        _, errors = process.communicate(timeout=120)
        assert (process.returncode, errors) == (0, "")
    with Store.open(url) as store:
        check_schema(store)
        assert migrate(store) == []
        made = store.query(DEFINED, {"database": "fresh"})
        assert {row["name"] for row in made} >= DECLARED.keys()
        store.command("DROP DATABASE fresh")


def test_later_migrations_make_tables_like_the_first_ones(folder):
    """A collector that is upgraded knows nothing of TTLs and clusters, and need not."""
    with Store.open(f"chdb://{folder}") as store:
        assert options_of(store) is None
        migrate(store, SchemaOptions(ttl_days=30))
        facts = next(each.version for each in migrations() if each.name == "run_facts")
        store.command(
            f"ALTER TABLE mast_schema_migrations DELETE WHERE Version = {facts}",
            settings={"mutations_sync": 2},
        )
        store.command("DROP TABLE mast_run_facts SYNC")
        assert migrate(store) == [facts]
        (row,) = store.query("SELECT engine_full FROM system.tables WHERE name = 'mast_run_facts'")
        assert "toIntervalDay(30)" in row["engine_full"]
        assert options_of(store) == SchemaOptions(ttl_days=30)


@pytest.mark.parametrize(
    ("one", "another", "refused"),
    [
        ({}, {"ttl_days": 3, "storage_policy": "hot", "fsync": False}, ""),
        ({}, {"cluster": "main"}, "cluster"),
        ({"cluster": "main"}, {"cluster": "other"}, "cluster"),
        ({}, {"replicated": True}, "replicated"),
        ({"cluster": "main"}, {"cluster": "main", "distributed": True}, "distributed"),
    ],
)
def test_options_that_contradict_the_tables_are_refused(one, another, refused):
    """A table cannot be plain where the others are spread, nor the other way round."""
    for made, asked in permutations((SchemaOptions(**one), SchemaOptions(**another))):
        with pytest.raises(ConfigurationError, match=f"{refused} =") if refused else nullcontext():
            assert _settled(asked, made) == asked
        assert (_settled(None, made), _settled(asked, None)) == (made, asked)


def test_options_of_another_database_are_refused(store):
    with pytest.raises(ConfigurationError, match="is opened on database"):
        migrate(store, SchemaOptions(database="another"))
    with pytest.raises(ConfigurationError, match="were made with cluster = ''"):
        migrate(store, SchemaOptions(database=store.database, cluster="main"))
    assert migrate(store, SchemaOptions(database=store.database, ttl_days=3)) == []


GOLDEN = Path(__file__).parent / "cluster.golden.sql"


def test_the_definitions_of_a_cluster_are_those_that_were_read_and_approved():
    """Written anew with MAST_TRACE_WRITE_GOLDEN=1; the difference is for people to read."""
    text = "".join(f"{statement};\n\n" for statement in render(CLUSTER))
    if os.environ.get("MAST_TRACE_WRITE_GOLDEN"):
        GOLDEN.write_text(text)
    assert text == GOLDEN.read_text()


VERSIONED = re.compile(r"\w+\.v\d+\.part")
RELEASED = Path(__file__).parent / "released_migrations.json"
EDITED = (
    "Version {} of the schema is released: databases have it, and will not get this change. Undo it, "
    "and write a new version; a part that is to change gets a copy with the next number."
)


def test_released_versions_are_not_edited():
    """Digests of released versions are recorded at a release, by hand: there is no switch for it."""
    versions = {str(each.version): each for each in migrations()}
    for version, digest in json.loads(RELEASED.read_text()).items():
        sql = "\n".join(versions[version].statements(SchemaOptions()))
        assert hashlib.sha256(sql.encode()).hexdigest() == digest, EDITED.format(version)


def test_every_part_has_a_version():
    assert [part.name for part in SCHEMA.glob("*.part") if not VERSIONED.fullmatch(part.name)] == []


def test_an_old_clickhouse_is_named_where_a_migration_fails(folder, monkeypatch):
    options = SchemaOptions(storage_policy="nowhere")
    with Store.open(f"chdb://{folder}") as store:
        with pytest.raises(StorageError, match="nowhere") as caught:
            migrate(store, options)
        assert "newer" not in str(caught.value)
        assert error_code(caught.value) is not None
        monkeypatch.setattr("mast_trace_collector.storage.migrations.OLDEST_CLICKHOUSE", (99, 1))
        with pytest.raises(
            StorageError, match=r"nowhere.*ClickHouse \d+.* 99.1 or newer"
        ) as caught:
            migrate(store, options)
        assert error_code(caught.value) is not None


def test_a_database_of_a_newer_version_is_refused(store):
    store.command("INSERT INTO mast_schema_migrations (Version, Name) VALUES (9999, 'later')")
    with pytest.raises(SchemaMismatch, match="upgrade mast-trace"):
        migrate(store)
    with pytest.raises(SchemaMismatch, match="upgrade mast-trace"):
        check_schema(store)


def test_the_span_table_is_the_exporters(store):
    rows = store.query("DESCRIBE TABLE otel_traces")
    count = len(EXPORTER_COLUMNS)
    assert [(row["name"], row["type"]) for row in rows[:count]] == EXPORTER_COLUMNS
    assert {row["default_type"] for row in rows[count:]} == {"MATERIALIZED", "ALIAS"}


def test_a_table_that_the_exporter_made_gets_our_columns(folder):
    with Store.open(f"chdb://{folder}") as store:
        store.command("CREATE DATABASE mast_trace", use_database=False)
        columns = ", ".join(f"`{name}` {kind}" for name, kind in EXPORTER_COLUMNS)
        store.command(
            f"CREATE TABLE otel_traces ({columns}) ENGINE = MergeTree "
            "PARTITION BY toDate(Timestamp) ORDER BY (ServiceName, SpanName, toDateTime(Timestamp))"
        )
        store.command(
            "INSERT INTO otel_traces (TraceId, SpanAttributes) "
            "VALUES ('old', {'gen_ai.agent.name': 'planner'})"
        )
        migrate(store)
        assert store.query("SELECT AgentName FROM otel_traces") == [{"AgentName": "planner"}]
        for _ in range(2):
            backfill_runs(store)
            runs = store.query("SELECT TraceId, Agents, Spans FROM mast_runs")
            assert runs == [{"TraceId": "old", "Agents": ["planner"], "Spans": 1}]


def test_inserts_reach_the_disk_unless_told_otherwise():
    assert "fsync_after_insert = 1, fsync_part_directory = 1" in "\n".join(render(SchemaOptions()))
    assert "fsync_" not in "\n".join(render(SchemaOptions(fsync=False)))
    assert "storage_policy =" not in "\n".join(render(SchemaOptions()))


def test_a_cluster_gets_local_tables_behind_distributed_ones():
    statements = render(CLUSTER)
    created = {
        match[1]
        for statement in statements
        if (match := re.match(r"CREATE TABLE IF NOT EXISTS traces\.(\w+)", statement))
    }
    stored = set(re.findall(r"traces\.(\w+)_local ON CLUSTER main\s*\(", "\n".join(statements)))
    plain = "\n".join(render(SchemaOptions(database="traces")))
    assert stored == set(re.findall(r"CREATE TABLE IF NOT EXISTS traces\.(\w+)\s*\(", plain)) - {
        "mast_otlp_inlet"
    }
    assert stored | {f"{name}_local" for name in stored} <= created
    assert (
        "CREATE TABLE IF NOT EXISTS traces.otel_traces ON CLUSTER main AS traces.otel_traces_local\n"
        "ENGINE = Distributed('main', 'traces', 'otel_traces_local', cityHash64(TraceId))"
    ) in statements


IN_A_CLUSTER = [*render(CLUSTER), *render(CLUSTER, {28})]
"""The statements for an empty database, and for one of version 28."""


def test_a_cluster_is_in_every_definition():
    for statement in IN_A_CLUSTER:
        if statement.startswith(("CREATE", "ALTER")):
            assert "ON CLUSTER main" in statement
        if statement.startswith("INSERT"):
            # Through the Distributed table: every node knows which versions there are.
            assert re.match(
                r"INSERT INTO traces\.(mast_schema_migrations|mast_findings|mast_run_states) \(",
                statement,
            )
        for engine in re.findall(r"ENGINE = (\w*MergeTree)", statement):
            assert engine.startswith("Replicated")


def test_every_statement_of_a_cluster_parses(store):
    """The engine reads the SQL for a cluster, which no cluster is needed for."""
    for statement in IN_A_CLUSTER:
        if not statement.startswith("INSERT"):
            store.query("SELECT formatQuery({sql:String})", {"sql": statement})


@pytest.mark.parametrize(
    "options",
    [
        {"database": "a; DROP"},
        {"cluster": "x y"},
        {"distributed": True},
        {"storage_policy": "p'"},
        {"ttl_days": -1},
    ],
)
def test_options_that_cannot_stand_in_sql_are_refused(options):
    with pytest.raises(ConfigurationError):
        SchemaOptions(**options)


OF_EVENTS = {
    "error.type",
    "event.name",
    "gen_ai.evaluation.explanation",
    "gen_ai.evaluation.name",
    "gen_ai.evaluation.score.label",
    "gen_ai.evaluation.score.value",
}
"""Attributes of the conventions' event of an evaluation, which other tools send."""

OF_GROUPS = {"user.id", "enduser.id", "service.version"}
"""Attributes of OpenTelemetry's general conventions that programs set themselves, and runs are grouped by."""

OF_PROVIDERS = {"gen_ai.system", "llm.provider"}
"""Names of a model's provider, of an earlier version of the conventions and of OpenInference."""


def test_attribute_names_in_the_schema_are_those_that_the_sdk_writes():
    """The SQL names attributes literally; a renamed constant must not leave it behind."""
    written = {value for value in vars(semconv).values() if isinstance(value, str)}
    for spellings in vocabulary.SPELLINGS.values():
        written.update(spellings)
    written |= OF_EVENTS | OF_GROUPS | OF_PROVIDERS
    for template in templates.schema_files().values():
        for name in re.findall(r"Attributes\['([^']+)'\]", template):
            assert name in written
