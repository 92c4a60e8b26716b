"""Erasure removes the selected rows from every table, and no others."""

from datetime import timedelta

import pytest
from otlp_requests import DAY, OTHER, START, TRACE, log_request, moment, two_runs

from mast_trace_collector.storage.log_writer import LogWriter
from mast_trace_collector.storage.removal import erasure
from mast_trace_collector.storage.removal.erasure import before, of_keys, of_project, of_runs
from mast_trace_collector.storage.removal.tombstones import AT_ONCE
from mast_trace_collector.storage.runs import SESSION, USER, runs_with

BETWEEN = moment(START + DAY // 2)


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
    ids = [f"{number:032x}" for number in range(AT_ONCE)] + [OTHER]
    erase(store, *of_runs(store, ids))
    assert len(of_keys([("", each) for each in ids])) == 2
    assert set(left(store).values()) == {"0"}


def test_a_persons_and_a_sessions_runs_are_found_by_any_spelling(store):
    two_runs(store)
    assert runs_with(store, USER, "ann") == [("", TRACE)]
    assert runs_with(store, SESSION, "c1") == [("", TRACE)]
    assert runs_with(store, ["service.name"], "shop") == [("", TRACE), ("", OTHER)]
    assert runs_with(store, USER, "ann", project="another") == []
    # One that only a log record names, and one whose spans retention has left out.
    record = {"trace_id": bytes.fromhex("a" * 32), "attributes": {"user.id": "bob"}}
    LogWriter(store).write([log_request(record)], token="bob")
    gone = {"Project": "two", "TraceId": "b" * 32, "UserId": "bob", "ConversationId": "c1"}
    store.insert("mast_left_out", [gone])
    assert runs_with(store, USER, "bob") == [("", "a" * 32), ("two", "b" * 32)]
    assert runs_with(store, USER, "bob", project="") == [("", "a" * 32)]
    assert runs_with(store, SESSION, "c1", project="two") == [("two", "b" * 32)]
    assert runs_with(store, USER, "ann' OR '1'='1") == []


@pytest.mark.parametrize(
    ("seconds", "stay"), [(0, "0f"), (1, "f")], ids=["within its second", "the second after"]
)
def test_a_run_goes_if_it_ended_before_the_time(embedded, seconds, stay):
    two_runs(embedded)
    erase(embedded, before(moment(START) + timedelta(seconds=seconds)))
    assert left(embedded)["otel_traces"] == left(embedded)["mast_run_states"] == stay


def test_a_run_that_went_on_after_the_time_keeps_the_rest(embedded):
    for number in (1, 2):
        at = {"Timestamp": moment(START + (number - 1) * DAY), "SpanId": f"{number:016x}"}
        embedded.insert("otel_traces", [{**at, "TraceId": TRACE}])
        # A label of a run of which nothing else is there, by the time at which it was given.
        label = {"TraceId": f"{number:x}" * 32, "LabelledAt": at["Timestamp"]}
        embedded.insert("mast_human_labels", [label])
    erase(embedded, before(BETWEEN))
    assert embedded.query("SELECT SpanId FROM otel_traces") == [{"SpanId": f"{2:016x}"}]
    assert left(embedded)["mast_run_states"] == TRACE[0]
    assert left(embedded)["mast_human_labels"] == "2"


def test_what_another_project_has_stays(embedded):
    """A time counts in the project that was named alone, and so does a project that nobody has."""
    two_runs(embedded, projects=("one", "two"))
    erase(embedded, before(BETWEEN, project="two"), of_project(embedded, "nobody's"))
    assert set(left(embedded).values()) == {"0f"}


def test_rows_that_name_a_project_alone_go_with_it(embedded):
    """Every table without runs is looked at; prices are no data about runs, and stay."""
    found = embedded.query(
        "SELECT table FROM system.columns WHERE database = currentDatabase() AND table IN (SELECT name FROM "
        "system.tables WHERE database = currentDatabase() AND engine LIKE '%MergeTree') GROUP BY table "
        "HAVING countIf(name = 'Project') AND NOT countIf(name IN ('TraceId', 'TraceIds'))"
    )
    tables = {row["table"] for row in found}
    assert {"mast_pattern_states", "mast_experiments", "mast_prices"} < tables
    for table in tables:
        embedded.insert(table, [{"Project": "one"}, {"Project": "two"}])
    erase(embedded, of_project(embedded, "one"))
    for table in tables - {"mast_prices"}:
        assert embedded.query(f"SELECT Project FROM {table}") == [{"Project": "two"}], table
    assert embedded.query("SELECT count() AS n FROM mast_prices") == [{"n": 2}]
