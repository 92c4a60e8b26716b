"""`Store.for_project`: whatever is asked, the engine answers with the rows of one project."""

import pytest
from endpoint_server import WRITE_TOKEN, serve
from otlp_requests import OTHER, two_runs
from server_users import store_with_users
from stores import SERVER, new_store

from mast_trace.exceptions import StorageError
from mast_trace_collector.clickhouse_http import ClickHouseHTTP
from mast_trace_collector.storage import Store, migrate, project_store
from mast_trace_collector.storage.project_store import store_of_project

OURS, THEIRS = "ours", "theirs"


def tables(store):
    """Every table, view and materialised view."""
    rows = store.query(
        "SELECT name, engine FROM system.tables WHERE database = {database:String}",
        {"database": store.database},
    )
    assert {"View", "MaterializedView"} < {row["engine"] for row in rows}
    return sorted(row["name"] for row in rows if row["engine"] != "Null")


@pytest.fixture(scope="module", params=["server"] if SERVER else ["embedded", "http", "cluster"])
def both(request, tmp_path_factory):
    """A store with a run of each of two projects, with verdicts, labels and calls on both."""
    if request.param == "server":
        with new_store(tmp_path_factory.mktemp("server")) as store:
            two_runs(store, projects=(OURS, THEIRS))
            yield store
        return
    engine = request.getfixturevalue("engine")
    if request.param == "cluster":
        engine.close()
        folder = tmp_path_factory.mktemp("cluster") / "data"
        with store_with_users(folder, shards=1) as store:
            two_runs(store, projects=(OURS, THEIRS))
            yield store
        return
    engine.renew()
    with Store.open(engine.url) as store:
        migrate(store)
        two_runs(store, projects=(OURS, THEIRS))
        if request.param == "embedded":
            yield store
            return
        app = ClickHouseHTTP(store, of_owner=True)
        with serve(app) as address, Store.open(f"http://any:{WRITE_TOKEN}@{address}") as client:
            yield client
        app.close()


@pytest.fixture
def ours(both):
    with store_of_project(both, OURS) as confined:
        yield confined


def test_no_table_or_view_shows_rows_of_another_project(both, ours):
    told = 0
    for table in tables(both):
        sql = f"SELECT * FROM {table}"
        seen = str(ours.query(sql))
        assert THEIRS not in seen, table
        assert OTHER not in seen, table
        told += OTHER in str(both.query(sql))
    assert told >= 9


def test_counts_and_sizes_are_of_one_project(both, ours):
    for table in ("otel_traces", "otel_traces_trace_id_ts", "mast_runs", "mast_run_states_mv"):
        sql = f"SELECT uniqExact(TraceId) AS n FROM {table}"
        assert (both.query(sql), ours.query(sql)) == ([{"n": 2}], [{"n": 1}])
    for table in ("parts", "tables", "columns", "processes", "mutations", "settings"):
        assert ours.query(f"SELECT count() AS n FROM system.{table}") == [{"n": 0}]
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


def test_nothing_else_is_done_with_it(ours, tmp_path):
    labels = "mast_human_labels"
    for act, words in (
        (lambda: ours.command("SELECT 1"), "run commands"),
        (lambda: ours.raw_insert(labels, b"", "TabSeparated"), "insert unread rows"),
        (lambda: ours.file_insert(labels, tmp_path, "TabSeparated", settings={}), "insert files"),
        (ours.client, "lend a client"),
    ):
        with pytest.raises(StorageError, match=f"does not {words}"):
            act()
    with pytest.raises(ValueError, match="alone"):
        store_of_project(ours, THEIRS)
    with store_of_project(ours, OURS) as again:
        assert again.query("SELECT Project FROM mast_runs") == [{"Project": OURS}]


def test_values_of_parameters_arrive(ours):
    sql = "SELECT {word:String} AS word"
    assert ours.query(sql, {"word": "a b"}) == [{"word": "a b"}]


def test_where_no_condition_can_be_set_nothing_is_shown(both, ours):
    """If the profile of a server's user is read-only, reading fails instead of showing everything."""

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
    with pytest.raises(StorageError, match="does not apply the setting log_comment"):
        ours.query("SELECT * FROM mast_runs")


def test_it_is_closed_with_the_whole_store(both):
    whole = Store.open(both.url, database=both.database)
    confined = store_of_project(whole, OURS)
    confined.query("SELECT 1")
    whole.close()
    with pytest.raises(StorageError, match="closed"):
        confined.query("SELECT 1")


def test_closing_it_leaves_the_whole_store_open(both):
    confined = store_of_project(both, OURS)
    confined.query("SELECT 1")
    confined.close()
    with pytest.raises(StorageError, match="closed"):
        confined.query("SELECT 1")
    assert len(both.query("SELECT * FROM mast_runs")) == 2
