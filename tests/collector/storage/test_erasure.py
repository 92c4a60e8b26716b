"""Erasure removes the selected rows from every table, and no others."""

from datetime import datetime, timezone

import pytest
from otlp_requests import DAY, OTHER, START, TRACE, agent_span, request, two_runs

from mast_trace_collector.storage import erasure
from mast_trace_collector.storage.erasure import before, of_keys, of_project, of_runs
from mast_trace_collector.storage.runs_by_attribute import SESSION, USER, runs_with
from mast_trace_collector.storage.span_writer import SpanWriter

BETWEEN = datetime.fromtimestamp((START + DAY // 2) // 10**9, timezone.utc)


def left(store):
    """Return the runs that each table still has, by the first digit of the id."""
    tables = store.query(
        "SELECT table FROM system.columns WHERE database = currentDatabase() AND name = 'TraceId' "
        "AND table IN (SELECT name FROM system.tables WHERE database = currentDatabase() "
        "AND engine LIKE '%MergeTree') AND table != 'mast_tombstones'"
    )
    out = {}
    for table in (row["table"] for row in tables):
        rows = store.query(f"SELECT DISTINCT TraceId FROM {table} ORDER BY TraceId")
        out[table] = "".join(row["TraceId"][0] for row in rows)
    return out


def erase(store, *erasures):
    erasure.erase(store, *erasures)
    for each in erasures:
        assert each.count(store) == 0
        assert set(each.rows(store).values()) == {0}


def test_an_erased_run_is_gone_from_every_table_that_tells_of_runs(store):
    """Every table with a TraceId is looked at, so that a new one cannot be forgotten here."""
    two_runs(store)
    (chosen,) = of_runs(store, [TRACE])
    assert chosen.count(store) == 1
    rows = chosen.rows(store)
    assert (rows["otel_traces"], rows["mast_judge_calls"], rows["mast_verdicts"]) == (2, 2, 1)
    erase(store, chosen)
    assert set(left(store).values()) == {"f"}


def test_an_unknown_run_erases_nothing(store):
    two_runs(store)
    erase(store, *of_runs(store, ["1" * 32]), *of_runs(store, []))
    assert set(left(store).values()) == {"0f"}


def test_more_runs_than_one_statement_can_name(store):
    two_runs(store)
    ids = [f"{number:032x}" for number in range(2500)] + [OTHER]
    erase(store, *of_runs(store, ids))
    assert len(of_keys([("", each) for each in ids])) > 3
    assert set(left(store).values()) == {"0"}


def test_another_projects_run_of_the_same_id_stays(store):
    requests = [request(agent_span(1)), request(agent_span(2))]
    SpanWriter(store).write(requests, token="t", project_of=["one", "two"].__getitem__)
    erase(store, *of_runs(store, [TRACE], project="one"))
    assert store.query("SELECT Project FROM otel_traces") == [{"Project": "two"}]
    assert left(store)["otel_traces_trace_id_ts"] == "0"
    erase(store, *of_runs(store, [TRACE], project="two"))
    assert left(store)["otel_traces_trace_id_ts"] == ""


def test_a_project_goes_as_a_whole_and_the_others_stay(store):
    two_runs(store, projects=("one", "two"))
    erase(store, of_project(store, "one"))
    assert set(left(store).values()) == {"f"}
    erase(store, of_project(store, "nobody's"))
    assert set(left(store).values()) == {"f"}


def test_a_persons_and_a_sessions_runs_are_found_by_any_spelling(store):
    two_runs(store)
    assert runs_with(store, USER, "ann") == [TRACE]
    assert runs_with(store, SESSION, "c1") == [TRACE]
    assert runs_with(store, ["service.name"], "shop") == [TRACE, OTHER]
    assert runs_with(store, USER, "ann", project="another") == []
    assert runs_with(store, USER, "ann' OR '1'='1") == []


def test_nothing_from_before_a_time_is_left_not_even_what_was_said_later(store):
    two_runs(store)
    erase(store, before(BETWEEN))
    assert set(left(store).values()) == {"f"}


@pytest.mark.parametrize(("project", "stay"), [("one", "f"), ("two", "0f")])
def test_a_time_counts_only_in_the_project_that_was_named(store, project, stay):
    two_runs(store, projects=("one", "two"))
    erase(store, before(BETWEEN, project=project))
    assert set(left(store).values()) == {stay}
