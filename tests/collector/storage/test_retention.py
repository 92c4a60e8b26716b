"""What is erased is gone from every table, and nothing else is."""

from datetime import datetime, timezone

import pytest
from otlp_requests import START, TRACE, agent_span, request

from mast_trace_collector.storage import SchemaOptions, SpanWriter, render
from mast_trace_collector.storage.retention import (
    TIMES,
    erase_before,
    erase_runs,
    runs_with,
    set_ttl,
    shrink_to,
)

OTHER = "f" * 32
DAY = 86_400 * 10**9


def fill(store, *, project_of=None):
    """Two runs with a verdict, a label and a model's call each; the other is a day younger."""
    requests = [
        request(agent_span(1, attributes={"enduser.id": "ann"}), agent_span(2, parent=1)),
        request(agent_span(1, trace=OTHER, start=START + DAY)),
    ]
    SpanWriter(store).write(requests, token="t", project_of=project_of)
    for number, trace in enumerate((TRACE, OTHER)):
        at = datetime.fromtimestamp((START + number * DAY) // 10**9, timezone.utc)
        project = project_of(number) if project_of else ""
        common = {"Project": project, "TraceId": trace}
        times = {"RunStart": at, "RunEnd": at, "JudgedAt": at}
        store.insert("mast_verdicts", [{**common, **times, "Status": "ok"}])
        store.insert("mast_human_labels", [{**common, "LabelledAt": at}])
        store.insert("mast_judge_calls", [{**common, "CallId": trace, "StartedAt": at}])


def left(store):
    """Which runs each table still has, by the first digit of the id."""
    out = {}
    for table in (*TIMES, "mast_human_labels"):
        rows = store.query(f"SELECT DISTINCT TraceId FROM {table} ORDER BY TraceId")
        out[table] = "".join(row["TraceId"][0] for row in rows)
    return out


def test_an_erased_run_is_gone_from_every_table(store):
    fill(store)
    assert erase_runs(store, [TRACE]) == 1
    assert set(left(store).values()) == {"f"}


def test_an_unknown_run_erases_nothing(store):
    fill(store)
    assert erase_runs(store, ["1" * 32]) == 0
    assert erase_runs(store, []) == 0
    assert set(left(store).values()) == {"0f"}


def test_another_projects_run_of_the_same_id_stays(store):
    requests = [request(agent_span(1)), request(agent_span(2))]
    SpanWriter(store).write(requests, token="t", project_of=["one", "two"].__getitem__)
    assert erase_runs(store, [TRACE], project="one") == 1
    assert store.query("SELECT Project FROM otel_traces") == [{"Project": "two"}]
    assert left(store)["otel_traces_trace_id_ts"] == "0"
    assert erase_runs(store, [TRACE], project="two") == 1
    assert left(store)["otel_traces_trace_id_ts"] == ""


def test_a_persons_runs_are_found_by_any_attribute(store):
    fill(store)
    assert runs_with(store, "enduser.id", "ann") == [TRACE]
    assert runs_with(store, "service.name", "shop") == [TRACE, OTHER]
    assert runs_with(store, "enduser.id", "ann' OR '1'='1") == []


def test_what_is_older_is_erased_but_what_people_said_is_kept(store):
    fill(store)
    erase_before(store, datetime.fromtimestamp((START + DAY // 2) // 10**9, timezone.utc))
    remaining = left(store)
    assert remaining.pop("mast_human_labels") == "0f"
    assert set(remaining.values()) == {"f"}


def test_the_oldest_days_go_first_and_the_newest_stays(store):
    fill(store)
    assert shrink_to(store, 10**12) == []
    assert len(shrink_to(store, 1)) == 1
    assert left(store)["otel_traces"] == "f"
    assert shrink_to(store, 1) == []


def test_retention_can_be_set_changed_and_removed(store):
    def tables_with(text):
        rows = store.query(
            "SELECT name FROM system.tables WHERE database = currentDatabase() "
            "AND position(engine_full, {text:String}) > 0",
            {"text": text},
        )
        return {row["name"] for row in rows}

    for days in (30, 7):
        set_ttl(store, days)
        assert tables_with(f"toIntervalDay({days})") == set(TIMES)
    set_ttl(store, 0)
    assert tables_with(" TTL ") == set()
    set_ttl(store, 0)


def test_a_negative_retention_is_refused(store):
    with pytest.raises(ValueError, match="days to keep"):
        set_ttl(store, -1)


def test_the_schema_forgets_by_the_same_times():
    statements = "\n".join(render(SchemaOptions(ttl_days=9)))
    for column in TIMES.values():
        assert f"TTL {column} + toIntervalDay(9)" in statements
    assert statements.count("toIntervalDay(9)") == len(TIMES)
