"""Old rows are dropped by whole days, and no others."""

from datetime import date, datetime, timedelta, timezone

import pytest
from otlp_requests import OTHER, two_runs

from mast_trace_collector.storage import SchemaOptions, render
from mast_trace_collector.storage.removal.retention import (
    TIMES,
    _droppable,
    beyond_age,
    beyond_size,
    set_ttl,
    shrink_to,
)


def rows_of(store):
    """Rows of every table that forgets."""
    return {
        table: store.query(f"SELECT count() AS n FROM {table}")[0]["n"] for table in sorted(TIMES)
    }


def runs_of(store):
    return store.query("SELECT uniqExact(Project, TraceId) AS n FROM mast_run_states")[0]["n"]


def gone_of(store, told, forget):
    """Rows that a limit drops beside the selected ones."""
    before, runs = rows_of(store), runs_of(store)
    assert rows_of(store) == before, "nothing is changed by asking"
    forget()
    after = rows_of(store)
    assert {t: before[t] - after[t] for t in before if before[t] > after[t]} == dict(told.rows)
    assert runs - runs_of(store) == told.runs


def test_what_would_go_by_size_is_what_goes(store):
    """The oldest day first, also one of logs alone; the newest with spans stays, and later logs."""
    two_runs(store)
    store.command("INSERT INTO otel_logs (Timestamp, Body) VALUES ('2020-02-03 04:05:06', 'old')")
    # A run that was written on a day that stays, too, stays.
    store.insert("mast_run_states", [{"TraceId": OTHER, "Day": date(2020, 2, 3)}])
    nothing = beyond_size(store, 10**12)
    assert (nothing.days, nothing.runs, nothing.rows, nothing.bytes) == ((), 0, {}, 0)
    told = beyond_size(store, 1)
    assert (len(told.days), told.days[0]) == (2, "2020-02-03")
    assert told.bytes > 0
    assert told.rows["otel_traces"] == 2
    gone_of(store, told, lambda: shrink_to(store, 1))
    assert store.query("SELECT DISTINCT TraceId FROM otel_traces") == [{"TraceId": OTHER}]
    assert shrink_to(store, 1) == []


@pytest.mark.parametrize(
    ("tables", "droppable"),
    [
        ([], ""),
        (["otel_traces"], ""),
        (["otel_logs", "otel_logs"], "0"),
        (["otel_traces", "otel_logs"], ""),
        (["otel_logs", "otel_traces", "otel_logs"], "0"),
        (["mast_run_states", "otel_traces", "otel_traces", "mast_run_states"], "1"),
        (["otel_traces_trace_id_ts", "otel_traces"], "0"),
    ],
)
def test_days_before_the_newest_one_with_spans_may_go(tables, droppable):
    parts = {str(day): {table: (1, 1)} for day, table in reversed([*enumerate(tables)])}
    assert "".join(_droppable(parts)) == droppable


def test_a_clock_that_is_ahead_makes_no_day_an_old_one():
    days = [datetime.now(timezone.utc) + timedelta(days=n) for n in (-1, 0, 3)]
    parts = {day.date().isoformat(): {"otel_traces": (1, 1)} for day in days}
    assert _droppable(parts) == [days[0].date().isoformat()]


def test_what_would_go_by_age_is_what_goes(store):
    two_runs(store)
    store.command("INSERT INTO otel_logs (Timestamp, Body) VALUES (now() - INTERVAL 40 DAY, 'old')")
    assert beyond_age(store, 0).rows == {}
    told = beyond_age(store, 30)
    assert told.rows["otel_logs"] == 1
    assert told.bytes > 0

    def forget():
        set_ttl(store, 30)
        for table in TIMES:
            store.command(f"OPTIMIZE TABLE {table} FINAL")

    gone_of(store, told, forget)


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
    # Workers' signs of life always end.
    assert tables_with(" TTL ") == {"mast_workers"}
    set_ttl(store, 0)


def test_a_negative_retention_is_refused(store):
    with pytest.raises(ValueError, match="days to keep"):
        set_ttl(store, -1)


def test_the_schema_forgets_by_the_same_times():
    statements = "\n".join(render(SchemaOptions(ttl_days=9)))
    for column in TIMES.values():
        assert f"TTL {column} + toIntervalDay(9)" in statements
    assert statements.count("toIntervalDay(9)") == len(TIMES)
    assert "mast_tombstones" not in TIMES, "an erasure is kept for ever"
    assert all("mast_workers" in each for each in render(SchemaOptions()) if "TTL" in each)
