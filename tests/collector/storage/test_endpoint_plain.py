"""Dictionaries hold the values of all projects in a part: a project reads columns that have none."""

import pytest
from endpoint_sweep import OURS, Answer, make_world

from mast_trace_collector.clickhouse_http.engine import Handles
from mast_trace_collector.clickhouse_http.plain_tables import PlainTables, plain
from mast_trace_collector.clickhouse_http.runner import Runner
from mast_trace_collector.storage import Store
from mast_trace_collector.storage.readers import PLAIN, READABLE


@pytest.fixture(scope="module")
def world(engine):
    engine.renew()
    with Store.open(engine.url) as store:
        runner = Runner(store, timeout=20, max_result=1024 * 1024)
        # Few enough for one granule: of a larger part the engine copies what a filter leaves, at times.
        yield make_world(store, runner, their_rows=50)
        runner.close()


@pytest.mark.parametrize(
    "expression",
    [
        "repeat('a', 1000000000 * (length({0}) - 6))",
        "repeat('a', reinterpretAsUInt64(substring({0}, 7)))",
        "toFixedString({0}, 6)",
        "round(1.5, 1000 * (length({0}) - 6))",
    ],
)
@pytest.mark.parametrize(
    "source", ["otel_traces", "mast_trace.otel_traces", "view(SELECT * FROM otel_traces)"]
)
def test_no_function_fails_for_a_value_of_others(world, expression, source):
    """Each would, for a longer name than any of ours; and what it says would tell the name."""
    for name in ("ServiceName", "SpanName"):
        for place in ("SELECT count() FROM {1} WHERE isNotNull({0})", "SELECT {0} FROM {1}"):
            answer = world.ask(place.format(expression.format(name), source))
            assert answer.code == 0, answer
    whole = world.ask(f"SELECT {expression.format('ServiceName')} FROM otel_traces", project=None)
    assert whole.code, "it fails for nobody"


@pytest.mark.parametrize("table", READABLE)
def test_no_column_that_a_project_reads_has_a_dictionary(world, table):
    stored = world.ask(f"DESCRIBE TABLE {table}")
    read = world.ask(f"DESCRIBE TABLE (SELECT * FROM {table})")
    assert "LowCardinality" not in read.body
    assert read.code == 0
    names = [line.split("\t")[0] for line in read.body.splitlines()]
    assert names == [line.split("\t")[0] for line in stored.body.splitlines()]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT count() FROM otel_traces PREWHERE SpanName = 'mine-1' OR 0",
        "SELECT count() FROM mast_trace.otel_traces AS t PREWHERE 1 OR 0 WHERE t.SpanName = 'mine-1' OR 0 LIMIT 1",
        "SELECT count() FROM mast_verdicts FINAL WHERE mast_verdicts.TraceId = 'mine-1'",
        "SELECT count() FROM mast_trace.mast_verdicts AS v FINAL PREWHERE v.TraceId = 'mine-1'",
        "SELECT count() FROM (SELECT 1 FROM otel_traces PREWHERE SpanName = 'mine-1' OR 0) WHERE 1 OR 0",
        "SELECT countIf(mast_trace.otel_traces.SpanName = 'mine-1') FROM mast_trace.otel_traces",
    ],
)
def test_statements_mean_what_they_did(world, sql):
    assert world.ask(sql) == Answer("1\n")


def test_rows_are_merged_by_final_alone(world):
    insert = "INSERT INTO mast_human_labels (Project, TraceId, Annotator, LabelledAt) VALUES"
    world.store.command(f"SYSTEM STOP MERGES {world.store.database}.mast_human_labels")
    for second in range(2):
        world.store.command(f"{insert} ('ours', 'twice', 'me', {second})")
    of_it = "WHERE TraceId = 'twice'"
    assert world.ask(f"SELECT count() FROM mast_human_labels {of_it}") == Answer("2\n")
    for merged in ("mast_human_labels FINAL", "mast_human_labels AS l FINAL"):
        assert world.ask(f"SELECT count() FROM {merged} {of_it}") == Answer("1\n")
    assert world.ask(f"SELECT count() FROM mast_human_labels {of_it} SETTINGS final = 1") == Answer(
        "1\n"
    )


def test_a_column_that_comes_later_is_read(world):
    world.store.command("ALTER TABLE otel_traces ADD COLUMN Later LowCardinality(String)")
    assert world.ask("SELECT DISTINCT toTypeName(Later) FROM otel_traces") == Answer("String\n")
    world.store.command("ALTER TABLE otel_traces DROP COLUMN Later")
    assert world.ask("SELECT Later FROM otel_traces").code == 47


def test_rows_may_be_counted_without_being_sent(world):
    assert world.ask("SELECT SpanName FROM otel_traces FORMAT Null") == Answer("")


def test_errors_name_the_table_as_it_was_asked_for(world):
    answer = world.ask("SELECT missing FROM otel_traces", project=OURS)
    assert answer.code == 47
    assert "FROM otel_traces" in answer.body


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("String", "String"),
        ("LowCardinality(String)", "String"),
        ("LowCardinality(Nullable(String))", "Nullable(String)"),
        ("Array(Map(LowCardinality(String), String))", "Array(Map(String, String))"),
        (
            "Tuple(a LowCardinality(FixedString(3)), b LowCardinality(Date))",
            "Tuple(a FixedString(3), b Date)",
        ),
    ],
)
def test_types_without_dictionaries(kind, expected):
    assert plain(kind) == expected


@pytest.fixture(scope="module")
def tables(world):
    made = PlainTables(world.store.database)
    with Handles(world.store.embedded_path, {}).borrow() as handle:
        made.renew(handle)
    return made


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT otel_traces.SpanName FROM otel_traces",
        "SELECT other.otel_traces FROM x",
        "SELECT 'PREWHERE' AS mast_runs",
    ],
)
def test_other_names_are_left_alone(tables, sql):
    assert tables.renamed(sql) == sql


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("1 FROM `mast_trace`.otel_traces", "1 FROM mast_plain.otel_traces"),
        (
            "other.otel_traces FROM mast_trace.otel_traces AS other",
            "other.otel_traces FROM mast_plain.otel_traces AS other",
        ),
        (
            "1 FROM otel_traces, mast_trace.mast_verdicts",
            "1 FROM otel_traces, mast_plain.mast_verdicts",
        ),
        ("1 FROM mast_verdicts FINAL", "1 FROM mast_verdicts_final AS mast_verdicts "),
        (
            "1 FROM otel_traces, mast_verdicts AS v FINAL, mast_human_labels",
            "1 FROM otel_traces, mast_verdicts_final AS v , mast_human_labels",
        ),
        (
            "1 FROM otel_traces PREWHERE SpanName = 'x' OR 0 WHERE 1 OR 0 ORDER BY 1",
            "1 FROM otel_traces WHERE ( SpanName = 'x' OR 0 ) AND ( 1 OR 0) ORDER BY 1",
        ),
        (
            "1 FROM (SELECT 1 FROM otel_traces PREWHERE 1) WHERE 2",
            "1 FROM (SELECT 1 FROM otel_traces WHERE ( 1)) WHERE 2",
        ),
        ("1 FROM otel_traces AS LIMIT PREWHERE 1", "1 FROM otel_traces AS LIMIT WHERE ( 1)"),
    ],
)
def test_statements_read_the_views(tables, sql, expected):
    assert tables.renamed(f"SELECT {sql}") == f"SELECT {expected}"


def test_views_are_made_once(tables, world):
    """A view that was made anew would be away for a moment, under the eyes of others."""
    with Handles(world.store.embedded_path, {}).borrow() as handle:
        handle.do(f"DROP VIEW {PLAIN}.mast_verdicts")
        tables.renew(handle)
        assert "mast_verdicts" not in handle.text(f"SHOW TABLES FROM {PLAIN}").split()
        world.store.command("ALTER TABLE mast_verdicts ADD COLUMN Later String")
        tables.renew(handle)
        world.store.command("ALTER TABLE mast_verdicts DROP COLUMN Later")
        tables.renew(handle)
        assert "mast_verdicts" in handle.text(f"SHOW TABLES FROM {PLAIN}").split()


def test_when_others_have_a_trace_of_the_same_id_is_not_told(world):
    """A sender chooses the ids of its traces: it may name one that it has heard of."""
    insert = "INSERT INTO otel_traces (TraceId, SpanId, Timestamp, ResourceAttributes) VALUES"
    for project, times in (
        ("ours", ("2026-01-01 10:00:00", "2026-01-01 10:00:05")),
        ("theirs-canary", ("2026-01-01 07:07:07", "2026-01-01 19:19:19")),
    ):
        rows = (f"('same', '{time}', '{time}', map('mast.project', '{project}'))" for time in times)
        world.store.command(f"{insert} {', '.join(rows)}")
    sql = "SELECT min(Start), max(End) FROM otel_traces_trace_id_ts WHERE TraceId = 'same'"
    assert world.ask(sql) == Answer("2026-01-01 10:00:00\t2026-01-01 10:00:05\n")
    assert world.ask(sql, project=None) == Answer("2026-01-01 07:07:07\t2026-01-01 19:19:19\n")
