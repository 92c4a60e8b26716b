"""`Store.for_project` where rows and tables change."""

import pytest
from otlp_requests import OTHER, TRACE, agent_span, request, two_runs

from mast_trace.exceptions import StorageError
from mast_trace_collector.storage import project_store
from mast_trace_collector.storage.project_store import store_of_project
from mast_trace_collector.storage.span_writer import SpanWriter

OURS, THEIRS = "ours", "theirs"
HOSTILE = "o'urs\\ {p:String} \"x\" , 'system.parts': '1"


@pytest.fixture
def both(embedded):
    """A store with a run of each of two projects."""
    two_runs(embedded, projects=(OURS, THEIRS))
    return embedded


@pytest.fixture
def ours(both):
    with store_of_project(both, OURS) as confined:
        yield confined


def test_any_text_is_a_projects_name(embedded):
    SpanWriter(embedded).write(
        [request(agent_span(1)), request(agent_span(2, trace=OTHER))],
        token="t",
        project_of=[HOSTILE, OURS].__getitem__,
    )
    for name in (HOSTILE, OURS, "", THEIRS):
        with store_of_project(embedded, name) as confined:
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


def test_rows_that_name_no_project_are_nobodys(both):
    for name in ("?", "", "None"):
        with (
            store_of_project(both, name) as store,
            pytest.raises(ValueError, match="another project"),
        ):
            store.insert("mast_human_labels", [{"TraceId": TRACE, "Annotator": "ann"}])


def test_what_is_sent_again_is_stored_once(both, ours):
    """An insert is known by its token, given as such or as a setting, whatever is in it."""
    for trace, token, settings in (
        ("first", "t", None),
        ("again", "t", None),
        ("other", "o", None),
        ("wanted", None, {"insert_deduplication_token": "s"}),
        ("again", None, {"insert_deduplication_token": "s"}),
    ):
        columns = [[OURS], [trace], ["bob"]]
        names = ("Project", "TraceId", "Annotator")
        ours.insert_columns("mast_human_labels", names, columns, token=token, settings=settings)
    stored = both.query("SELECT TraceId AS id FROM mast_human_labels WHERE Annotator = 'bob'")
    assert {row["id"] for row in stored} == {"first", "other", "wanted"}


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


def test_a_database_without_tables_shows_nothing(embedded):
    embedded.command("DROP DATABASE mast_trace SYNC", use_database=False)
    with store_of_project(embedded, OURS) as confined:
        with pytest.raises(StorageError, match="mast-trace migrate"):
            confined.query("SELECT 1")
        embedded.command("CREATE DATABASE mast_trace", use_database=False)
        with pytest.raises(StorageError, match=r"the tables are missing: .*mast-trace migrate"):
            confined.query("SELECT 1")
