"""`Store.for_project`: whatever is asked, the engine answers with the rows of one project."""

import pytest
from otlp_requests import OTHER, TRACE, agent_span, request, two_runs
from test_cluster import cluster  # noqa: F401  # a fixture

from mast_trace.exceptions import StorageError
from mast_trace_collector.storage import SpanWriter, project_store

OURS, THEIRS = "ours", "theirs"
HOSTILE = "o'urs\\ {p:String} \"x\" , 'system.parts': '1"


def tables(store):
    """Every table, view and materialised view."""
    rows = store.query(
        "SELECT name, engine FROM system.tables WHERE database = {database:String}",
        {"database": store.database},
    )
    assert {"View", "MaterializedView"} < {row["engine"] for row in rows}
    return sorted(row["name"] for row in rows if row["engine"] != "Null")


@pytest.fixture
def both(store):
    """A store with a run of each of two projects, with verdicts, labels and calls on both."""
    two_runs(store, projects=(OURS, THEIRS))
    return store


@pytest.fixture
def ours(both):
    with both.for_project(OURS) as confined:
        yield confined


def test_no_table_or_view_shows_rows_of_another_project(both, ours):
    told = 0
    for table in tables(both):
        seen, whole = str(ours.query(f"SELECT * FROM {table}")), both.query(f"SELECT * FROM {table}")
        assert THEIRS not in seen, table
        assert OTHER not in seen, table
        told += OTHER in str(whole)
    assert told >= 9


def test_counts_and_sizes_are_of_one_project(both, ours):
    for table in ("otel_traces", "otel_traces_trace_id_ts", "mast_runs", "mast_run_states_mv"):
        sql = f"SELECT uniqExact(TraceId) AS n FROM {table}"
        assert (both.query(sql), ours.query(sql)) == ([{"n": 2}], [{"n": 1}])
    for table in ("parts", "tables", "columns", "query_log", "processes", "mutations", "settings"):
        try:
            assert ours.query(f"SELECT count() AS n FROM system.{table}") == [{"n": 0}]
        except StorageError as error:
            assert "UNKNOWN_TABLE" in str(error)  # a log that nothing has been written to
    assert ours.query("SELECT sum(number) AS n FROM numbers(3)") == [{"n": 3}]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT Project FROM otel_traces AS mast_schema_migrations",
        "SELECT Project FROM mast_trace.otel_traces",
        "SELECT l.Project FROM otel_traces AS l LEFT JOIN mast_runs AS r USING (TraceId)",
        "WITH (SELECT groupArray(Project) FROM mast_runs) AS all SELECT arrayJoin(all) AS Project",
        "SELECT arrayJoin(groupUniqArrayArray([Project])) AS Project FROM otel_traces PREWHERE SpanId != ''",
        "SELECT Project FROM mast_verdicts FINAL UNION ALL SELECT Project FROM mast_human_labels FINAL",
        "SELECT Project FROM mast_run_states WHERE TraceId IN (SELECT TraceId FROM otel_traces)",
    ],
)
def test_no_way_of_asking_leads_around_it(both, ours, sql):
    sql = sql.replace("mast_trace.", f"{both.database}.")
    assert {row.get("Project", row.get("l.Project")) for row in ours.query(sql)} == {OURS}


def test_any_text_is_a_projects_name(store):
    SpanWriter(store).write(
        [request(agent_span(1)), request(agent_span(2, trace=OTHER))],
        token="t",
        project_of=[HOSTILE, OURS].__getitem__,
    )
    for name in (HOSTILE, OURS, "", THEIRS):
        with store.for_project(name) as confined:
            rows = confined.query("SELECT DISTINCT Project FROM otel_traces")
            assert [row["Project"] for row in rows] == [name] * (name in {HOSTILE, OURS})
            assert confined.query("SELECT count() AS n FROM system.parts") == [{"n": 0}]


def label(project, trace=TRACE):
    return {"Project": project, "TraceId": trace, "Annotator": "ann"}


def test_only_rows_of_the_project_are_written(both, ours):
    ours.insert("mast_human_labels", [label(OURS, "new")])
    for rows in (
        [label(THEIRS)],
        [label(OURS), label(THEIRS)],
        [label("")],
        [{"TraceId": TRACE, "Annotator": "ann"}],
    ):
        with pytest.raises(ValueError, match="another project"):
            ours.insert("mast_human_labels", rows)
    stored = both.query("SELECT Project FROM mast_human_labels WHERE Annotator = 'ann'")
    assert [row["Project"] for row in stored] == [OURS]


def test_nothing_else_is_done_with_it(ours, tmp_path):
    for act in (
        lambda: ours.command("SELECT 1"),
        lambda: ours.raw_insert("mast_human_labels", b"", "TabSeparated"),
        lambda: ours.file_insert("mast_human_labels", tmp_path, "TabSeparated", settings={}),
        ours.client,
    ):
        with pytest.raises(StorageError, match="one project"):
            act()
    with pytest.raises(ValueError, match="alone"):
        ours.for_project(THEIRS)


def test_what_a_migration_replaces_stays_confined(both, ours, monkeypatch):
    """A view that reads a new table by tomorrow is confined by its own name, a new table soon."""
    assert len(ours.query("SELECT * FROM mast_runs")) == 1
    both.command(
        "CREATE TABLE later ENGINE = MergeTree ORDER BY tuple() AS SELECT * FROM mast_runs"
    )
    both.command("CREATE OR REPLACE VIEW mast_runs AS SELECT * FROM later")
    assert [row["Project"] for row in ours.query("SELECT * FROM mast_runs")] == [OURS]
    monkeypatch.setattr(project_store, "_RENEW_SECONDS", 0.0)
    for _ in range(3):
        assert [row["Project"] for row in ours.query("SELECT * FROM later")] == [OURS]


def test_where_no_condition_can_be_set_nothing_is_shown(both, ours):
    """As for a user of a server whose profile is read-only: rather an error than everything."""

    def prepare(client):
        client.set_client_setting("readonly", "1")
        ours._confine(client)

    ours._clients = ours._clients.prepared(prepare)
    try:
        shown = ours.query("SELECT Project FROM mast_runs")
    except StorageError as error:
        assert "readonly" in str(error)  # noqa: PT017
    else:  # our own endpoint sets what comes with a request in the request's order
        assert shown == [{"Project": OURS}]


def test_where_the_condition_is_not_applied_nothing_is_shown(both, ours, monkeypatch):
    monkeypatch.setattr(project_store, "_SETTING", "log_comment")
    with pytest.raises(StorageError, match="does not apply"):
        ours.query("SELECT * FROM mast_runs")


def test_a_database_without_tables_shows_nothing(embedded):
    embedded.command("DROP DATABASE mast_trace SYNC", use_database=False)
    with (
        embedded.for_project(OURS) as confined,
        pytest.raises(StorageError, match="mast-trace migrate"),
    ):
        confined.query("SELECT 1")


def test_distributed_tables_are_confined_on_their_shards(cluster):  # noqa: F811
    two_runs(cluster, projects=(OURS, THEIRS))
    with cluster.for_project(OURS) as confined:
        for table in tables(cluster):
            seen = str(confined.query(f"SELECT * FROM {table}"))
            assert THEIRS not in seen, table
            assert OTHER not in seen, table
        assert confined.query("SELECT Project FROM mast_runs") == [{"Project": OURS}]


def test_closing_it_leaves_the_whole_store_open(both):
    confined = both.for_project(OURS)
    confined.query("SELECT 1")
    confined.close()
    with pytest.raises(StorageError, match="closed"):
        confined.query("SELECT 1")
    assert len(both.query("SELECT * FROM mast_runs")) == 2
