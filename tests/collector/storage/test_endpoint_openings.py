"""Questions that clients ask before they show anything, with the key of one project.

Each is answered, with nothing of another project, or refused in words that say what to do.
"""

import pytest
from otlp_requests import OTHER
from test_endpoint_security import ask


@pytest.fixture(scope="module")
def opened(of_key):
    """Asks with a key of the project that has the first of two runs."""
    address, key = of_key
    return lambda sql, **fields: ask(address, sql, key=key, **fields)


JDBC = """select currentUser() user, timezone() timezone, version() version,
toUInt8(ifnull((select value from system.settings where name = 'readonly'), '0')) as readonly,
toInt8(ifnull((select value from system.settings where name = 'throw_on_unsupported_query_inside_transaction'), '-1')) as throw_on_unsupported_query_inside_transaction,
(ifnull((select value from system.settings where name = 'wait_changes_become_visible_after_commit_mode'), '')) as wait_changes_become_visible_after_commit_mode,
toInt8(ifnull((select value from system.settings where name = 'implicit_transaction'), '-1')) as implicit_transaction,
toUInt64(ifnull((select value from system.settings where name = 'max_insert_block_size'), '0')) as max_insert_block_size,
toInt8(ifnull((select value from system.settings where name = 'allow_experimental_lightweight_delete'), '-1')) as allow_experimental_lightweight_delete,
(ifnull((select value from system.settings where name = 'custom_jdbc_config'), '')) as custom_jdbc_config
FORMAT TSV"""
JDBC_TABLES = """SELECT '' AS TABLE_CAT, t.database AS TABLE_SCHEM, t.name AS TABLE_NAME, CASE
WHEN t.engine LIKE '%Log' THEN 'LOG TABLE' WHEN t.engine in ('Buffer', 'Memory', 'Set') THEN 'MEMORY TABLE'
WHEN t.is_temporary != 0 THEN 'TEMPORARY TABLE' WHEN t.engine like '%View' THEN 'VIEW'
WHEN t.database = 'system' THEN 'SYSTEM TABLE' ELSE 'TABLE' END AS TABLE_TYPE, t.comment AS REMARKS,
CAST(null, 'Nullable(String)') AS TYPE_CAT, d.engine AS TYPE_SCHEM
FROM system.tables t JOIN system.databases d ON t.database = d.name
WHERE t.database LIKE '%' AND t.name LIKE '%' ORDER BY t.database, t.name"""
JDBC_COLUMNS = """SELECT '' AS TABLE_CAT, database AS TABLE_SCHEM, table AS TABLE_NAME, name AS COLUMN_NAME,
toInt32(12) AS DATA_TYPE, type AS TYPE_NAME, position AS ORDINAL_POSITION, comment AS REMARKS,
toInt32(numeric_scale) AS DECIMAL_DIGITS, default_expression AS COLUMN_DEF
FROM system.columns WHERE database LIKE '%' AND table LIKE 'mast_runs' ORDER BY 2, 3, 7"""
SIZES = """SELECT table, sum(rows) AS table_rows, max(modification_time) AS latest, formatReadableSize(sum(bytes_on_disk)) AS size
FROM system.parts WHERE active AND database = 'mast_trace' GROUP BY table"""
ANSWERED = {
    "JDBC: settings": (JDBC, "default\t"),
    "JDBC: greeting": ("SELECT currentUser() AS user, timezone() AS timezone, version() AS version LIMIT 1", "default\t"),
    "JDBC: schemas": ("SELECT name AS TABLE_SCHEM, null AS TABLE_CATALOG FROM system.databases WHERE name LIKE '%' ORDER BY name", "mast_trace\t"),
    "JDBC: tables": (JDBC_TABLES, "mast_trace\tmast_evaluations\tVIEW\t"),
    "JDBC: columns": (JDBC_COLUMNS, "mast_runs\tProject\t12\tLowCardinality(String)\t"),
    "JDBC: functions": ("SELECT name AS FUNCTION_NAME, is_aggregate FROM system.functions WHERE name LIKE 'upper'", "upper\t0"),
    "JDBC: table types": ("SELECT name FROM system.table_engines", "MergeTree"),
    "JDBC: types": ("SELECT name, case_insensitive, alias_to FROM system.data_type_families", "String\t"),
    "DBeaver: sizes": (SIZES, ""),
    "DBeaver: definition": ("SHOW CREATE TABLE mast_trace.otel_traces", "CREATE TABLE mast_trace.otel_traces"),
    "DBeaver: definition of a view": ("SHOW CREATE VIEW mast_trace.mast_runs", "CREATE VIEW mast_trace.mast_runs"),
    "DBeaver: a table": ("SELECT * FROM mast_trace.mast_runs LIMIT 0, 200", "ours"),
    "DBeaver: counted": ("SELECT count() FROM mast_trace.mast_runs", "1\n"),
    "Metabase: version": ("SELECT version()", "."),
    "Metabase: alive": ("SELECT 1", "1\n"),
    "Metabase: zone": ("SELECT timezone() AS tz", "\n"),
    "Metabase: tables": ("SELECT table_schema, table_name FROM information_schema.tables WHERE table_schema = 'mast_trace'", "mast_trace\tmast_runs"),
    "Metabase: columns": ("SELECT column_name, data_type, is_nullable FROM INFORMATION_SCHEMA.COLUMNS WHERE table_name = 'mast_runs'", "TraceId\tString\t0"),
    "Metabase: schemas": ("SELECT schema_name FROM information_schema.schemata", "mast_trace\n"),
    "Metabase: sample": ("SELECT `mast_trace`.`mast_runs`.`Project` AS `Project` FROM `mast_trace`.`mast_runs` LIMIT 10000", "ours\n"),
    "Grafana: greeting": ("SELECT displayName(), version(), revision(), timezone()", "mast-trace\t"),
    "Grafana: databases": ("SHOW DATABASES", "mast_trace\n"),
    "Grafana: tables": ("SHOW TABLES FROM mast_trace", "otel_traces\n"),
    "Grafana: columns": ('DESC TABLE "mast_trace"."otel_traces"', "TraceId\tString\t"),
    "Grafana: keys of a map": ('SELECT DISTINCT arrayJoin(mapKeys("ResourceAttributes")) AS keys FROM "mast_trace"."otel_traces" LIMIT 1000', "mast.project"),
    "Grafana: functions": ("SELECT name, description FROM system.functions", "upper\t"),
    "Grafana: alive": ("SELECT 1 FORMAT JSON", '"rows": 1'),
    "clickhouse-connect: greeting": ("SELECT version(), timezone()", "\t"),
    "clickhouse-connect: settings": ("SELECT name, value, readonly as readonly FROM system.settings LIMIT 10000", "max_threads\t"),
    "SQLAlchemy: database": ("SELECT currentDatabase()", "mast_trace\n"),
    "SQLAlchemy: there is": ("EXISTS DATABASE `mast_trace`", "1\n"),
    "SQLAlchemy: table": ("EXISTS TABLE `mast_trace`.`mast_runs`", "1\n"),
    "SQLAlchemy: views": ("SELECT name FROM system.tables WHERE database = 'mast_trace' AND engine IN ('View', 'WindowView') ORDER BY name", "mast_runs\n"),
    "SQLAlchemy: materialised views": ("SELECT name FROM system.tables WHERE database = 'mast_trace' AND engine = 'MaterializedView' ORDER BY name", ""),
    "SQLAlchemy: engine": ("SELECT engine, engine_full, comment FROM system.tables WHERE database = 'mast_trace' AND name = 'otel_traces'", "MergeTree\t"),
    "SQLAlchemy: columns": ("DESCRIBE TABLE `mast_trace`.`mast_runs`", "TraceId\tString"),
    "clickhouse-client: completion": ("SELECT keyword FROM system.keywords", "SELECT\n"),
    "clickhouse-client: zones": ("SELECT time_zone FROM system.time_zones", "Europe/Berlin\n"),
    "linq2db: tables": ("select name, comment, engine LIKE '%View' from system.tables where is_temporary = 0 and database = database()", "mast_runs\t"),
}  # fmt: skip
REFUSED = {
    "SHOW GRANTS": "SHOW GRANTS is not allowed; SHOW TABLES",
    "SHOW GRANTS FOR CURRENT_USER": "SHOW GRANTS is not allowed; SHOW TABLES",
    "SHOW PROCESSLIST": "SHOW PROCESSLIST is not allowed; SHOW TABLES",
    "SHOW USERS": "SHOW USERS is not allowed; SHOW TABLES",
    "SHOW CLUSTERS": "SHOW CLUSTERS is not allowed; SHOW TABLES",
    "SHOW SETTINGS LIKE '%'": "SETTINGS may stand at the end",
    "SHOW CREATE DATABASE mast_trace": "SHOW CREATE is not allowed; SHOW TABLES",
    "SHOW CREATE DICTIONARY mast_trace.x": "SHOW CREATE is not allowed; SHOW TABLES",
    "SHOW COLUMNS FROM mast_runs": "SHOW COLUMNS is not allowed; SHOW TABLES",
    "SET session_timezone = 'UTC'": "SET session_timezone is not allowed; SELECT",
    "USE mast_trace": "USE mast_trace is not allowed; SELECT",
    "SELECT hostName()": "the function hostName is not allowed",
    "SELECT serverUUID()": "the function serverUUID is not allowed",
    "SELECT uptime()": "the function uptime is not allowed",
    "SELECT query FROM system.processes": "the table system.processes is not allowed",
    "SELECT * FROM system.clusters": "the table system.clusters is not allowed",
    "SELECT * FROM system.disks": "the table system.disks is not allowed",
    "SELECT * FROM system.dictionaries": "the table system.dictionaries is not allowed",
    "SELECT * FROM system.query_log": "the table system.query_log is not allowed",
    "SELECT * FROM system.grants": "the table system.grants is not allowed",
    "SELECT * FROM system.users": "the table system.users is not allowed",
    "SELECT * FROM system.mutations": "the table system.mutations is not allowed",
    "SELECT * FROM system.metrics": "the table system.metrics is not allowed",
    "EXPLAIN SELECT 1": "EXPLAIN SELECT is not allowed; SELECT",
    "KILL QUERY WHERE query_id = 'x'": "KILL QUERY is not allowed; SELECT",
    "CREATE TEMPORARY TABLE t (a UInt8)": "CREATE TEMPORARY is not allowed; SELECT",
}
FORMATS = ("RowBinaryWithNamesAndTypes", "Native", "JSONCompact", "TabSeparatedWithNamesAndTypes")


@pytest.mark.parametrize(("sql", "part"), ANSWERED.values(), ids=ANSWERED)
def test_what_a_client_asks_first_is_answered(opened, sql, part):
    status, number, body = opened(sql, default_format="TSV", database="mast_trace")
    assert (status, number) == (200, ""), body
    assert part in body
    assert "theirs" not in body
    assert OTHER not in body
    assert "mast_otlp_inlet" not in body


@pytest.mark.parametrize("sql", [sql for sql, _ in ANSWERED.values()], ids=list(ANSWERED))
def test_it_is_answered_in_the_formats_that_drivers_read(opened, sql):
    for number, fmt in enumerate(FORMATS):
        fields = {"client_protocol_version": "54460"} if number % 2 else {}
        status, _, body = opened(sql, default_format=fmt, **fields)
        assert status == 200, (fmt, body)
        assert "theirs" not in body


@pytest.mark.parametrize(("sql", "words"), REFUSED.items(), ids=list(REFUSED))
def test_what_a_client_may_not_ask_is_refused_in_words(opened, sql, words):
    status, number, body = opened(sql)
    assert (status, number) == (403, "497"), body
    assert f"this endpoint only reads: {words}" in body


def test_settings_that_drivers_send_along_are_kept_or_refused_in_words(opened):
    for name, value in (("max_execution_time", "30"), ("session_timezone", "UTC"), ("date_time_input_format", "best_effort")):  # fmt: skip
        assert opened("SELECT 1", **{name: value})[0] == 200, name
    for name, value in (("session_id", "x"), ("wait_end_of_query", "1"), ("query_id", "q"), ("buffer_size", "9"), ("role", "r")):  # fmt: skip
        assert opened("SELECT 1", **{name: value})[0] == 200, name
    status, _, body = opened("SELECT 1", allow_introspection_functions="1")
    assert status == 403
    assert "the setting allow_introspection_functions is not allowed" in body
