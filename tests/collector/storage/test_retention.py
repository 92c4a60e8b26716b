"""What is old is forgotten by whole days, and nothing else is."""

import pytest
from otlp_requests import two_runs

from mast_trace_collector.storage import SchemaOptions, render
from mast_trace_collector.storage.retention import TIMES, set_ttl, shrink_to


def spans_left(store):
    """The first digits of the ids of the runs that still have spans."""
    rows = store.query("SELECT DISTINCT TraceId FROM otel_traces ORDER BY TraceId")
    return "".join(row["TraceId"][0] for row in rows)


def test_the_oldest_days_go_first_and_the_newest_stays(store):
    two_runs(store)
    assert shrink_to(store, 10**12) == []
    assert len(shrink_to(store, 1)) == 1
    assert spans_left(store) == "f"
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
