"""Each check of a reader's statement refuses in words of its own, so that none hides behind another."""

from dataclasses import replace

import pytest
from endpoint_sweep import DENIED, OURS, THEIRS, World
from otlp_requests import OTHER, TRACE

from mast_trace.exceptions import ConfigurationError
from mast_trace_collector.clickhouse_http.confinement import Confinement
from mast_trace_collector.clickhouse_http.errors import QueryError
from mast_trace_collector.clickhouse_http.planning import EVERYWHERE, prove
from mast_trace_collector.clickhouse_http.runner import Runner
from mast_trace_collector.storage.readers import DECLARED, READABLE

CALL = "the function {} is not allowed; functions that compute from their arguments alone are"
NAME = "the name {} is not allowed: a function that readers may not use has it"
TABLE = "the table {} is not allowed; mast_confirmations"
FORMAT = "the format {} is not allowed; JSON"
KIND = "{} is not allowed; SELECT, SHOW TABLES, DESCRIBE TABLE"
FILE = "INTO OUTFILE is not allowed: the rows are the answer"
APPLY = "APPLY is not allowed: write the function out for each column"
HIDDEN = sorted(DECLARED.keys() - READABLE.keys())
"""Ours, but no reader's: what stands behind views that write."""
READERS = pytest.mark.parametrize("project", [OURS, None], ids=["project", "everything"])


@pytest.fixture(scope="module")
def world(both, tmp_path_factory):
    secret = tmp_path_factory.mktemp("secret") / "secret.txt"
    secret.write_text("canary-in-a-file\n")
    runner = Runner(both, timeout=20, max_result=10_000_000)
    secrets = ["canary-in-a-file", "root:x:0:0:root", both.embedded_path]
    yield World(both, runner, secret.parent, secret, secrets, [THEIRS, OTHER])
    runner.close()


def refused(world, sql, words, project=OURS, **options):
    """Check that a statement is refused by the check that says these words."""
    answer = world.ask(sql.replace("{path}", str(world.secret_file)), project=project, **options)
    assert (answer.code, world.leaks(answer, project)) == (DENIED, []), answer
    assert f"this endpoint only reads: {words}" in answer.body


@READERS
@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("SELECT file('{path}')", CALL.format("file")),
        ("SELECT `file`('{path}')", CALL.format("file")),
        ("SELECT FILE('{path}')", CALL.format("FILE")),
        ("SELECT arrayMap(x -> file(x), ['{path}'])", CALL.format("file")),
        ("SELECT arrayMap(file, ['{path}'])", NAME.format("file")),
        ("SELECT arrayMap(`file`, ['{path}'])", NAME.format("file")),
        ("SELECT arrayMap(\"f\\x69le\", ['{path}'])", NAME.format("file")),
        ("SELECT arrayFilter(file, ['{path}'])", NAME.format("file")),
        ("SELECT arrayExists(file, ['{path}'])", NAME.format("file")),
        ("SELECT arrayFold(file, ['{path}'], '')", NAME.format("file")),
        ("SELECT mapApply(file, map('a', '{path}'))", NAME.format("file")),
        ("WITH file AS f SELECT arrayMap(f, ['{path}'])", NAME.format("file")),
        ("WITH (x -> file(x)) AS f SELECT f('{path}')", CALL.format("file")),
        ("SELECT arrayMap(getServerSetting, ['path'])", NAME.format("getServerSetting")),
        ("SELECT getServerSetting('path')", CALL.format("getServerSetting")),
        ("SELECT arrayMap(aiGenerate, ['x'])", NAME.format("aiGenerate")),
        ("SELECT aiGenerate('x')", CALL.format("aiGenerate")),
        ("SELECT hostName()", CALL.format("hostName")),
        ("SELECT arrayMap(url, ['http://127.0.0.1:1'])", NAME.format("url")),
        ("SELECT * APPLY file FROM (SELECT '{path}' AS p)", APPLY),
        ("SELECT sum(1) OVER (ORDER BY file('{path}'))", CALL.format("file")),
        ("SELECT sum(1) OVER w WINDOW w AS (ORDER BY file('{path}'))", CALL.format("file")),
        ("SELECT anyIf(file('{path}'), 1)", CALL.format("file")),
        ("SELECT * FROM file('{path}')", "the table function file is not allowed; generate_series"),
    ],
)
def test_a_function_that_opens_something_is_refused_by_its_name(world, sql, words, project):
    refused(world, sql, words, project)


@READERS
@pytest.mark.parametrize("table", HIDDEN)
def test_what_stands_behind_views_is_refused_by_its_name(world, table, project):
    for name in (table, f"mast_trace.{table}", f"`mast_trace`.`{table}`"):
        written = name.replace("`", "")
        refused(world, f"SELECT * FROM {name}", TABLE.format(written), project)
        refused(world, f"SELECT 1 IN {name}", TABLE.format(written), project)
        refused(world, f"DESCRIBE TABLE {name}", TABLE.format(written), project)
        refused(world, f"EXPLAIN AST SELECT * FROM {name}", TABLE.format(written), project)


@pytest.mark.parametrize("project", [OURS, None])
def test_the_engine_itself_refuses_what_stands_behind_views(world, project):
    """Without the gate: the user who reads has no right to it."""
    confinement = world.runner._confinement
    for sql in (
        *(f"SELECT * FROM {world.store.database}.{table}" for table in HIDDEN),
        "SELECT * FROM system.users",
        f"SELECT * FROM file('{world.secret_file}', 'LineAsString')",
        "SELECT * FROM url('http://127.0.0.1:1/', 'CSV', 'a String')",
    ):
        with (
            pytest.raises(QueryError, match="Not enough privileges"),
            confinement.view(sql, project) as view,
            world.runner._readers.borrow() as handle,
        ):
            handle.run(f"SELECT * FROM {view}", "TabSeparated")


@READERS
@pytest.mark.parametrize(
    "kind", ["ESTIMATE", "PLAN", "PIPELINE", "SYNTAX", "QUERY TREE", "ANALYZE"]
)
def test_an_explanation_tells_not_whether_a_trace_exists(world, kind, project):
    first = "" if kind == "PLAN" else f" {kind.split()[0]}"
    for trace in (TRACE, OTHER, "0" * 32):
        sql = f"EXPLAIN {kind} SELECT * FROM otel_traces WHERE TraceId = '{trace}'"
        refused(world, sql, KIND.format(f"EXPLAIN{first or ' SELECT'}"), project)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 1 FORMAT Template",
        "SELECT 1 format Template",
        "SELECT 1 FoRmAt Template;",
        "SELECT 1\nFORMAT\n\tTemplate\n",
        "SELECT 1 FORMAT/**/Template",
        "SELECT 1 FORMAT /* CSV */ Template -- CSV",
        "SELECT 1 FORMAT -- CSV\n Template",
        "SELECT 1 FORMAT # CSV\n Template",
        "SELECT 1 FORMAT `Template`",
        'SELECT 1 FORMAT "Templ\\x61te"',
        "(SELECT 1) FORMAT Template",
        "WITH 1 AS x SELECT x FORMAT Template",
        "SELECT * FROM (SELECT 1) FORMAT Template",
        "SELECT * FROM (SELECT 1) AS FORMAT FORMAT Template",
        "SELECT 1 AS FORMAT, 2 AS CSV FORMAT Template",
        "SELECT ' FORMAT CSV' FORMAT Template",
        "SELECT 1 UNION ALL SELECT 2 FORMAT Template",
        "(SELECT 1) UNION ALL (SELECT 2) FORMAT Template",
        "SELECT 1 INTERSECT SELECT 1 FORMAT Template",
        "SELECT 1 WHERE 1 IN (SELECT 1) FORMAT Template",
        "SELECT 1 FORMAT Template SETTINGS max_threads = 1",
        "SELECT 1 SETTINGS max_threads = 1 FORMAT Template",
        "SELECT 1 SETTINGS max_threads = 1 FORMAT Template SETTINGS max_block_size = 9",
        "SHOW TABLES FORMAT Template",
        "EXISTS TABLE otel_traces FORMAT Template",
        "DESCRIBE TABLE otel_traces FORMAT Template",
        "EXPLAIN AST SELECT 1 FORMAT Template",
        "CREATE VIEW v AS SELECT 1 FORMAT Template",
        "CREATE TABLE t ENGINE = Memory AS SELECT 1 FORMAT Template",
    ],
)
def test_a_format_that_opens_files_is_refused_however_it_is_written(world, sql):
    for project in (OURS, None):
        refused(world, sql, FORMAT.format("Template"), project)
        refused(world, sql, FORMAT.format("Template"), project, default_format="CSV")


def test_the_format_of_the_address_is_checked_too(world):
    refused(world, "SELECT 1", FORMAT.format("Template"), default_format="Template")
    refused(world, "SELECT 1 FORMAT Protobuf", FORMAT.format("Protobuf"), default_format="Template")
    assert world.ask("SELECT 1 FORMAT CSV", default_format="Template").body == "1\n"


@READERS
def test_a_setting_that_lifts_a_limit_is_refused_by_its_name(world, project):
    for name in ("readonly", "additional_table_filters", "format_schema", "max_rows_to_read"):
        words = f"the setting {name} is not allowed; those that say how rows are written"
        refused(world, f"SELECT 1 SETTINGS {name} = 0", words, project)
        refused(world, f"SELECT 1 FORMAT CSV SETTINGS {name} = 0", words, project)
        refused(world, "SELECT 1", words, project, settings={name: "0"})
    words = "SETTINGS may stand at the end of the statement only"
    refused(world, "SELECT * FROM (SELECT 1 SETTINGS readonly = 0)", words, project)
    refused(world, "SELECT 1 SETTINGS additional_table_filters = {'a': 'b'}", words, project)


@READERS
@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 1 INTO OUTFILE '/x/y'",
        "SELECT 1 into/**/outfile '/x/y' FORMAT CSV",
        "SELECT 1 INTO OUTFILE '/x/y' APPEND COMPRESSION 'gzip' FORMAT Template",
        "SELECT 1 UNION ALL SELECT 2 INTO OUTFILE '/x/y' TRUNCATE",
        "SHOW TABLES INTO OUTFILE '/x/y'",
    ],
)
def test_rows_written_to_a_file_are_refused(world, sql, project):
    refused(world, sql, FILE, project)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 1; SELECT 2",
        "SELECT 1;;SELECT 2",
        "SELECT 1; DROP TABLE otel_traces",
        "SELECT 1;SET a=1",
    ],
)
def test_statements_in_a_row_are_refused(world, sql):
    refused(world, sql, "one statement at a time")


def test_values_of_parameters_are_values_whatever_is_in_them(world):
    given = {"s": r"it\'s \\ \t\n\0', file('x') --", "n": r"\N", "a": r"['x\'y','z']", "i": "7"}
    sql = "SELECT hex({s:String}), hex({a:Array(String)}[1]), {i:UInt8} + 1, {n:Nullable(String)} IS NULL"
    value = "it's \\ \t\n\0', file('x') --"
    expected = [value.encode().hex().upper(), b"x'y".hex().upper(), "8", "1"]
    assert world.ask(sql, params=given).body.split() == expected


def test_a_value_that_the_engine_reads_as_empty_is_empty(world):
    for sql, body in (
        ("SELECT {n:String} = ''", "1\n"),
        ("SELECT {n:String} = '', hex({t:String}), {n:String} != 'x'", "1\t09\t1\n"),
    ):
        assert world.ask(sql, params={"n": r"\N", "t": r"\t"}).body == body


def test_an_engine_that_hides_a_part_of_the_statement_serves_no_readers(world, monkeypatch):
    """Engines before 26.7 leave out what a window is ordered by; the endpoint relies on the tree."""
    whole = Confinement.tree

    def without_windows(self, handle, select):
        tree = whole(self, handle, select)
        for node in tree.walk():
            if node.kind == "WindowListElement":
                node.children.clear()
        return tree

    monkeypatch.setattr(Confinement, "tree", without_windows)
    with pytest.raises(
        ConfigurationError, match=r"does not show .*calls \[\d+, \d+\] are not seen"
    ):
        Runner(world.store, timeout=20, max_result=1)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 1) UNION ALL SELECT * FROM (SELECT 2",
        "SELECT 1) AS a, (SELECT 2",
        "SELECT 1) AS a JOIN numbers(1) AS b ON (SELECT 1",
        "SELECT 1) AS a JOIN numbers(1) AS b ON (1",
    ],
)
def test_what_would_break_out_of_the_view_is_refused(world, text):
    """Rendered statements cannot; if one could, it would be seen here."""
    with (
        world.runner._planning.borrow() as handle,
        pytest.raises(QueryError, match="this endpoint only reads: one SELECT at a time"),
    ):
        world.runner._confinement.tree(handle, text)


def test_a_tree_that_hides_names_as_arguments_is_no_proof(world):
    with world.runner._planning.borrow() as handle:
        tree = world.runner._confinement.tree(handle, EVERYWHERE)
    prove(tree)
    for node in tree.walk():
        node.children = [child for child in node.children if child.kind != "Identifier"]
    with pytest.raises(
        ConfigurationError, match=r"calls \[\] are not seen.*MAST_TRACE_DATABASE_URL"
    ):
        prove(tree)


def test_each_reader_gets_its_rows(world):
    sql = "SELECT DISTINCT Project FROM mast_runs ORDER BY 1"
    for project, seen in (
        (OURS, f"{OURS}\n"),
        (THEIRS, f"{THEIRS}\n"),
        (None, f"{OURS}\n{THEIRS}\n"),
    ):
        assert world.ask(sql, project=project).body == seen
    assert world.ask(sql, project="another").body == ""


def test_an_endpoint_of_its_owner_serves_no_readers(world):
    runner = Runner(world.store, timeout=20, max_result=10_000, readers=False)
    refused(replace(world, runner=runner), "SELECT 1", "it serves no readers")
    runner.close()
