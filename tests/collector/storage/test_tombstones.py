"""Nothing about an erased run stays or comes back, whoever writes it and whenever."""

import itertools
import json
import threading
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone

import pytest
from endpoint_server import WRITE_TOKEN
from otlp_requests import OTHER, START, TRACE, agent_span, log_request, request, two_runs
from test_erasure import BETWEEN, erase, left

from mast_trace.exceptions import ConfigurationError, RunErased, StorageError
from mast_trace_collector.storage import Store
from mast_trace_collector.storage.log_writer import LogWriter
from mast_trace_collector.storage.removal import erasure, tombstones
from mast_trace_collector.storage.removal import sweep as module
from mast_trace_collector.storage.removal.erasure import before, delete_since, of_project, of_runs
from mast_trace_collector.storage.removal.sweep import Sweeper, sweep
from mast_trace_collector.storage.removal.tombstone_file import (
    beside,
    keep_in_step,
    read_tombstones,
)
from mast_trace_collector.storage.removal.tombstones import (
    Tombstone,
    bury,
    find_tombstones,
    insert_living,
    new_stamp,
    tombstones_of,
    unfinished,
)
from mast_trace_collector.storage.runs import find_run, finished_runs, record_outcome
from mast_trace_collector.storage.span_writer import SpanWriter

SCOPES = {
    "a run": lambda store: of_runs(store, [TRACE]),
    "a run of a project": lambda store: of_runs(store, [TRACE], project="one"),
    "a project": lambda store: [of_project(store, "one")],
    "a time": lambda store: [before(BETWEEN)],
    "a time of a project": lambda store: [before(BETWEEN, project="one")],
}


@pytest.fixture
def store(embedded):
    """The embedded store; `by_http` is the other way."""
    return embedded


@pytest.fixture
def by_http(endpoint):
    with Store.open(f"http://tests:{WRITE_TOKEN}@{endpoint}") as store:
        yield store


@pytest.fixture
def of_test(request):
    return request


@pytest.fixture
def erased(store):
    """The store with two runs of which the first is erased."""
    two_runs(store)
    erasure.erase(store, *of_runs(store, [TRACE]))
    return store


def bury_the_first(store, stamp):
    """Leave the tombstone of an erasure that has not deleted anything."""
    bury(store, stamp, "SELECT '' AS Project, {trace:String} AS TraceId", {"trace": TRACE})


@contextmanager
def sweeping(store, told):
    """Have a store swept meanwhile."""
    sweeper = Sweeper(store, told)
    sweeper.start()
    try:
        yield
    finally:
        sweeper.stop()


def late_rows(store, project="one"):
    """Rows about the run in every table, by those who write them directly."""
    common = {"Project": project, "TraceId": TRACE}
    resource = {"mast.project": project}
    at = datetime.now(timezone.utc)
    store.insert(
        "otel_traces",
        [{"Timestamp": at, "TraceId": TRACE, "SpanId": "9" * 16, "ResourceAttributes": resource}],
    )
    store.insert("otel_logs", [{"Timestamp": at, "TraceId": TRACE, "ResourceAttributes": resource}])
    for row in store.query(
        "SELECT table, groupArray(name) AS columns FROM system.columns WHERE database = currentDatabase() "
        "AND table IN (SELECT name FROM system.tables WHERE database = currentDatabase() AND engine LIKE '%MergeTree') "
        "GROUP BY table HAVING has(columns, 'TraceId') AND table NOT IN "
        "('otel_traces', 'otel_logs', 'otel_traces_trace_id_ts', 'mast_tombstones')"
    ):
        store.insert(row["table"], [{k: v for k, v in common.items() if k in row["columns"]}])
    store.insert(
        "mast_pattern_names", [{"Project": project, "PatternId": "p", "TraceIds": [TRACE, OTHER]}]
    )


def rows_of(store, trace=TRACE):
    return {table: rows for table, rows in left(store).items() if trace[0] in rows}


@pytest.mark.parametrize("scope", SCOPES)
def test_whatever_arrives_under_a_tombstone_is_swept_and_counted(store, scope):
    two_runs(store, projects=("one", "one" if scope != "a project" else "two"))
    erase(store, *SCOPES[scope](store))
    assert set(left(store).values()) == {"f"}
    assert sweep(store) == 0
    late_rows(store)
    assert len(rows_of(store)) > 15
    swept = sweep(store)
    assert rows_of(store) == {}
    assert set(left(store).values()) == {"f"}, "another run stays"
    assert [each.arrived for each in find_tombstones(store)] == [swept]
    assert sweep(store) == 0


def test_arrivals_add_up(erased):
    for number in range(2):
        erased.insert("mast_lessons", [{"Project": "", "TraceId": TRACE, "Number": number}])
        assert sweep(erased) == 1
    assert [each.arrived for each in find_tombstones(erased)] == [2]


def test_a_table_that_somebody_adds_is_erased_and_swept(store):
    """The database's catalogue decides, so that no list can forget a table."""
    store.command(
        "CREATE TABLE plugin (TraceId String, Note String) ENGINE = MergeTree ORDER BY TraceId"
    )
    store.command(
        "CREATE TABLE `odd name` (Project String, TraceIds Array(String)) ENGINE = MergeTree ORDER BY Project"
    )
    two_runs(store)
    for _ in range(2):
        store.insert("plugin", [{"TraceId": TRACE, "Note": "x"}, {"TraceId": OTHER, "Note": "y"}])
        store.insert("odd name", [{"Project": "", "TraceIds": [OTHER, TRACE]}])
        erasure.erase(store, *of_runs(store, [TRACE])) if not find_tombstones(store) else sweep(
            store
        )
        assert store.query("SELECT DISTINCT TraceId FROM plugin") == [{"TraceId": OTHER}]
        assert store.query("SELECT count() AS n FROM `odd name`") == [{"n": 0}]
    store.command("DROP TABLE plugin SYNC")
    store.command("DROP TABLE `odd name` SYNC")


def test_a_run_of_another_project_with_the_same_id_is_never_swept(store):
    requests = [request(agent_span(1)), request(agent_span(2))]
    SpanWriter(store).write(requests, token="t", project_of=["one", "two"].__getitem__)
    erase(store, *of_runs(store, [TRACE], project="one"))
    for late in range(2):
        assert store.query("SELECT Project FROM otel_traces") == [{"Project": "two"}]
        assert left(store)["otel_traces_trace_id_ts"] == "0"
        assert sweep(store) == 0
        if not late:
            sent = [request(agent_span(3))]
            SpanWriter(store).write(sent, token="u", project_of=["one"].__getitem__)
            assert sweep(store) > 0
    erase(store, *of_runs(store, [TRACE], project="two"))
    assert left(store)["otel_traces_trace_id_ts"] == ""


def test_what_has_arrived_is_not_due_and_not_stored(erased, monkeypatch):
    store = erased
    root = agent_span(7, operation="invoke_workflow")
    SpanWriter(store).write([request(root)], token="late")
    SpanWriter(store).write([request(agent_span(1, trace="a" * 32))], token="another")
    due = finished_runs(store, judge_version="v", quiet=0, idle=0)
    assert {run.trace_id for run in due} == {"a" * 32}
    with pytest.raises(RunErased, match=TRACE):
        record_outcome(store, TRACE, "success")
    monkeypatch.setattr(tombstones, "AT_ONCE", 1)
    rows = [{"Project": "", "TraceId": each} for each in (TRACE, ".", OTHER)]
    assert insert_living(store, "mast_lessons", rows) == rows[1:]
    assert insert_living(store, "mast_lessons", rows[:1]) == []
    assert rows_of(store).keys().isdisjoint({"mast_lessons"})


@pytest.mark.parametrize("way", ["store", "by_http"])
def test_a_late_record_of_any_kind_is_swept(of_test, way):
    store = of_test.getfixturevalue(way)
    two_runs(store)
    erase(store, *of_runs(store, [TRACE]))
    record = {"trace_id": bytes.fromhex(TRACE), "time_unix_nano": START, "body": "their words"}
    start = {**record, "event_name": "mast.run.start", "span_id": b"12345678"}
    for writer, late in (
        (SpanWriter, request(agent_span(7))),
        (LogWriter, log_request(start)),
        (LogWriter, log_request(record)),
    ):
        writer(store).write([late], token=f"late {late}")
        assert rows_of(store)
        assert sweep(store) > 0
        assert rows_of(store) == {}
    assert find_run(store, TRACE) == []


def test_a_killed_erasure_is_finished_by_the_sweep(store):
    """Its tombstones are there; its deletions may have come to any table."""
    two_runs(store)
    long_ago = new_stamp(store) - 60 * 10**6
    bury_the_first(store, long_ago)
    store.command(
        f"ALTER TABLE mast_run_states DELETE WHERE TraceId = '{TRACE}'",
        settings={"mutations_sync": 2},
    )
    assert sweep(store) > 10
    assert rows_of(store) == {}


def test_the_sweeper_waits_for_the_end_of_an_erasure(store, monkeypatch):
    """It is killed without another change in the database."""
    two_runs(store)
    bury_the_first(store, new_stamp(store))
    sweeper = Sweeper(store)
    sweeper._step()
    assert rows_of(store)
    for name in ("_UNFINISHED", "_ROWS"):
        later = getattr(tombstones, name).replace("toIntervalSecond(30)", "toIntervalSecond(0)")
        monkeypatch.setattr(tombstones, name, later)
    sweeper._step()
    assert rows_of(store) == {}
    assert unfinished(store) == []
    beside(store).unlink()


def test_an_erasure_that_goes_on_is_left_to_itself(store):
    """Its rows are not counted as arrivals, and not deleted twice at the same time."""
    two_runs(store)
    stamp = new_stamp(store)
    bury_the_first(store, stamp)
    assert sweep(store) == 0
    assert rows_of(store)
    delete_since(store, stamp)
    assert rows_of(store) == {}
    assert [(each.arrived, each.going_on) for each in find_tombstones(store)] == [(0, False)]
    ahead = stamp + 3600 * 10**6  # by a clock that was set back since
    bury_the_first(store, ahead)
    assert new_stamp(store) == ahead + 1, "no erasure ends by the end of another"


@pytest.mark.parametrize("often", [2, 1000])
def test_what_comes_meanwhile_is_deleted_or_an_error_at_last(store, monkeypatch, often):
    two_runs(store)
    original, calls = Store.command, itertools.count()

    def command(self, sql, *more, **options):
        answer = original(self, sql, *more, **options)
        if sql.startswith("ALTER TABLE `mast_judge_calls`") and (number := next(calls)) < often:
            store.insert("mast_judge_calls", [{"TraceId": TRACE, "CallId": f"call {number}"}])
        return answer

    monkeypatch.setattr(Store, "command", command)
    monkeypatch.setattr(erasure, "_PAUSE", 0.0)
    if often == 2:
        erasure.erase(store, *of_runs(store, [TRACE]))
        assert rows_of(store) == {}
        return
    with pytest.raises(StorageError, match="1 in mast_judge_calls"):
        erasure.erase(store, *of_runs(store, [TRACE]))
    monkeypatch.undo()
    assert rows_of(store).keys() == {"mast_judge_calls"}


def test_the_time_of_the_first_erasure_stays(erased):
    store = erased
    (first,) = find_tombstones(store)
    SpanWriter(store).write([request(agent_span(7))], token="late")
    erasure.erase(store, *of_runs(store, [TRACE]))
    store.command("OPTIMIZE TABLE mast_tombstones FINAL")
    assert [each.erased_at for each in find_tombstones(store)] == [first.erased_at]
    assert tombstones_of(store, [("", TRACE), ("", OTHER), ("two", TRACE)]).keys() == {("", TRACE)}
    assert find_tombstones(store, TRACE[:5].upper()) == find_tombstones(store)
    assert find_tombstones(store, TRACE[:5], "two") == []


def test_a_run_that_begins_while_its_project_is_erased_stays_whole(store, monkeypatch):
    two_runs(store, projects=("one", "two"))
    original, began = Store.command, []

    def command(self, sql, *more, **options):
        if sql.startswith("ALTER") and not began:
            began.append(sql)
            SpanWriter(store).write(
                [request(agent_span(1, trace="a" * 32))],
                token="new",
                project_of=["one"].__getitem__,
            )
        return original(self, sql, *more, **options)

    monkeypatch.setattr(Store, "command", command)
    erasure.erase(store, of_project(store, "one"))
    tables = {"otel_traces", "mast_run_states", "otel_traces_trace_id_ts"}
    assert rows_of(store, "a" * 32).keys() == tables
    assert rows_of(store) == {}


def test_the_file_and_the_database_learn_from_each_other(erased, tmp_path, monkeypatch):
    monkeypatch.setattr(tombstones, "AT_ONCE", 1)
    store, path = erased, tmp_path / "tombstones.jsonl"
    assert keep_in_step(store, path) == 0
    (known,) = read_tombstones(path)
    assert known == find_tombstones(store)[0]
    assert path.stat().st_mode & 0o77 == 0
    earlier = known.erased_at - timedelta(days=3)
    shape = {"project": "", "trace_id": OTHER, "erased_at": earlier.isoformat()}
    shapes = [{**shape, "trace_id": "e" * 32}, shape]
    path.write_text("".join(json.dumps(each) + "\n" for each in shapes))
    assert keep_in_step(store, path) == 2
    assert set(left(store).values()) == {""}
    gone = [Tombstone("", "e" * 32, earlier), Tombstone("", OTHER, earlier)]
    assert find_tombstones(store) == [*gone, known]
    assert set(read_tombstones(path)) == set(find_tombstones(store))
    assert keep_in_step(store, path) == 0
    path.write_text('{"project": ""}\n')
    with pytest.raises(ConfigurationError, match=r"tombstones\.jsonl"):
        keep_in_step(store, path)


def test_the_sweeper_deletes_what_comes_and_keeps_the_file(erased, monkeypatch):
    """It is awaited by its own report, not by a clock."""
    monkeypatch.setattr("mast_trace_collector.storage.removal.sweep._PAUSE", 0.01)
    counted, swept = [], threading.Event()
    with sweeping(erased, lambda rows: (counted.append(rows), swept.set())):
        for number in range(2):
            swept.clear()
            SpanWriter(erased).write([request(agent_span(7 + number))], token=f"late {number}")
            assert swept.wait(60)
    assert rows_of(erased) == {}
    assert sum(counted) == 6
    # Counted by what was found first: the views of an insert may bring their rows a moment later.
    assert 2 <= find_tombstones(erased)[0].arrived <= 6
    file = beside(erased)
    assert [each.trace_id for each in read_tombstones(file)] == [TRACE]
    file.unlink()


def test_the_sweeper_goes_on_after_a_failure(erased, monkeypatch):
    failures, swept = [StorageError("away"), ZeroDivisionError("a mistake")], threading.Event()
    original = module.sweep

    def failing(store):
        if failures:
            raise failures.pop()
        return original(store)

    monkeypatch.setattr(module, "sweep", failing)
    monkeypatch.setattr(module, "_AFTER_FAILURE", 0.01)
    SpanWriter(erased).write([request(agent_span(7))], token="late")
    with sweeping(erased, lambda _: swept.set()):
        assert swept.wait(60)
    assert (failures, rows_of(erased)) == ([], {})
    beside(erased).unlink()


def test_an_idle_store_is_not_looked_through(erased, monkeypatch):
    looks = []
    monkeypatch.setattr(module, "sweep", lambda _: looks.append(1) or 0)
    sweeper = Sweeper(erased)
    for _ in range(5):
        sweeper._step()
    assert len(looks) == 1
    erased.insert("mast_lessons", [{"Project": "", "TraceId": TRACE}])
    sweeper._step()
    assert len(looks) == 2
    monkeypatch.setattr(module, "_LONGEST_PAUSE", 0.0)
    looking = Sweeper(erased)
    for _ in range(2):
        looking._step()
    assert len(looks) == 4, "now and then it is: numbers of rows may be equal by chance"
    beside(erased).unlink()
