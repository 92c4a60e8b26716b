"""Totals of runs that an earlier version stored are made exact, and nothing is judged again for it."""

from __future__ import annotations

import subprocess
import sys
import threading
import uuid
from datetime import datetime, timezone

import pytest
from old_schema import BEFORE_COUNTING, BEFORE_WHOLE_IDS, make_version
from otlp_requests import TRACE, agent_span
from otlp_requests import request as sent_together
from stores import SERVER, server_address

from mast_trace_collector.storage import Store, check_schema, migrate, repair_later, totals_repair
from mast_trace_collector.storage.migrations import migrations, repair
from mast_trace_collector.storage.repair_later import RepairLater
from mast_trace_collector.storage.runs import finished_runs, record_outcome, run_summary
from mast_trace_collector.storage.span_writer import SpanWriter

USED = {"gen_ai.usage.input_tokens": 100, "gen_ai.usage.output_tokens": 7}
CALLS = 2_000
NEW = [each.version for each in migrations() if each.version >= 10]


def calls(trace=TRACE, first=1, number=CALLS):
    """A request with model calls that all have the same tokens; the first is the root, every tenth fails."""
    return sent_together(
        agent_span(first, "invoke_workflow", trace=trace),
        *(
            agent_span(
                each, parent=first, trace=trace, status=2 * (each % 10 == 0), attributes=USED
            )
            for each in range(first + 1, first + 1 + number)
        ),
    )


@pytest.fixture
def old(request):
    """A store as the version before left it, with one run in it; on the server that is tested, if any."""
    database = f"test_{uuid.uuid4().hex}" if SERVER else "mast_trace"
    url = server_address() if SERVER else f"chdb://{request.getfixturevalue('folder')}"
    with Store.open(url, database=database) as store:
        make_version(store, BEFORE_WHOLE_IDS)
        SpanWriter(store).write([calls()], token="before")
        yield store
        if SERVER:
            store.command(f"DROP DATABASE {database}", use_database=False)


def runs(store):
    return store.query(
        "SELECT TraceId, Spans, Errors, InputTokens, OutputTokens, Totals FROM mast_runs ORDER BY TraceId"
    )


def exact(*traces, number=CALLS):
    return [
        {
            "TraceId": trace,
            "Spans": number + 1,
            "Errors": number // 10,
            "InputTokens": 100 * number,
            "OutputTokens": 7 * number,
            "Totals": "exact",
        }
        for trace in traces
    ]


def judge(store):
    """A verdict on each run, as the judge of the version before wrote it."""
    store.command(
        "INSERT INTO mast_verdicts (TraceId, Fingerprint, JudgeVersion, JudgedAt, Status, Outcome, RunStart,"
        " RunEnd, RunSeen) SELECT TraceId, Fingerprint, 'j1', now64(3), 'ok', 'failure', Start, End, LastSeen"
        " FROM mast_runs"
    )


@pytest.mark.parametrize("merged", ["before", "after", "never"])
def test_totals_become_exact(old, merged):
    (before,) = old.query("SELECT InputTokens FROM mast_runs")
    assert before["InputTokens"] < 0.99 * 100 * CALLS, "the version before was wrong"
    if merged == "before":
        old.command("OPTIMIZE TABLE mast_run_states FINAL")
    assert migrate(old) == NEW
    if merged == "after":
        old.command("OPTIMIZE TABLE mast_run_states FINAL")
    assert runs(old) == exact(TRACE)


@pytest.mark.parametrize("later", ["nothing", "repeated", "outcome"])
def test_nothing_is_judged_again_that_did_not_change(old, later):
    judge(old)
    before = old.query("SELECT * EXCEPT (Spans, InputTokens, OutputTokens) FROM mast_runs")
    found = old.query("SELECT * FROM mast_findings")
    migrate(old)
    (after,) = old.query("SELECT * FROM mast_runs")
    assert {name: after[name] for name in before[0]} == before[0]
    added = {"Kind": "", "ExaminedBits": 0, "Calibrated": False}
    kept = ", ".join(f"`{name}`" for name in {**found[0], **added})
    assert [{**row, **added} for row in found] == old.query(f"SELECT {kept} FROM mast_findings")
    if later == "repeated":
        # The token of before: what a crash in the upgrade makes of a segment. And under another one.
        for token in ("before", "again"):
            SpanWriter(old).write([calls()], token=token)
            assert runs(old) == exact(TRACE)
    if later == "outcome":
        record_outcome(old, TRACE, "failure", "wrong")
    due = finished_runs(old, judge_version="j1", quiet=0, idle=0)
    assert [run.trace_id for run in due] == ([TRACE] if later == "outcome" else [])


def test_a_run_whose_spans_are_gone_keeps_what_is_known_of_it(old):
    before = old.query("SELECT TraceId, Spans, Errors, InputTokens, OutputTokens FROM mast_runs")
    old.command("TRUNCATE TABLE otel_traces")
    migrate(old)
    assert runs(old) == [{**before[0], "Totals": "about"}]
    assert run_summary(old, TRACE).totals == "about"


def test_a_run_of_which_half_is_gone_is_not_called_exact(old):
    (before,) = old.query("SELECT Fingerprint FROM mast_runs")
    old.command(
        "ALTER TABLE otel_traces DELETE WHERE SpanId > {id:String}",
        {"id": f"{CALLS // 2:016x}"},
        settings={"mutations_sync": 2},
    )
    migrate(old)
    (run,) = runs(old)
    assert (run["Totals"], run["Spans"], run["Errors"]) == ("about", CALLS + 1, CALLS // 10)
    assert run["InputTokens"] >= 100 * (CALLS // 2 - 1)
    assert old.query("SELECT Fingerprint FROM mast_runs") == [before]


def test_what_comes_to_an_old_run_counts_with_it(old):
    migrate(old)
    SpanWriter(old).write([calls(first=1, number=CALLS + 500)], token="later")
    assert runs(old) == exact(TRACE, number=CALLS + 500)


def test_a_repaired_run_stands_under_its_old_day(old):
    """A new one would bring runs of long ago back before the judge."""
    old.command(
        "INSERT INTO mast_run_states SELECT * REPLACE (toDate('2026-01-02') AS Day,"
        " toDateTime64('2026-01-02 03:00:00', 3) AS LastSeen) FROM mast_run_states"
    )
    old.command("ALTER TABLE mast_run_states DROP PARTITION {day:String}", {"day": today(old)})
    migrate(old)
    assert runs(old) == exact(TRACE)
    (row,) = old.query("SELECT groupUniqArray(toString(Day)) AS days FROM mast_run_states")
    assert row["days"] == ["2026-01-02"]
    assert finished_runs(old, judge_version="j1", quiet=0, idle=0) == []
    assert run_summary(old, TRACE).last_seen == datetime(2026, 1, 2, 3, tzinfo=timezone.utc)


def today(store):
    (row,) = store.query("SELECT toString(today()) AS day")
    return row["day"]


MANY = [f"{number * 2**112 + 7:032x}" for number in range(1, 13)]


def project_of(number):
    """Return the project of one of `MANY`: they are of three, and all are repaired."""
    return ("", "one", "two")[number % 3]


@pytest.fixture
def dozen(old, monkeypatch):
    """A dozen small runs more, and a repair that takes one or two at a time."""
    sent = [calls(trace, number=20) for trace in MANY]
    SpanWriter(old).write(sent, token="many before", project_of=project_of)
    monkeypatch.setattr(totals_repair, "SPANS_AT_ONCE", 30)
    return old


def repaired(store):
    return words(store).get("exact", 0)


def words(store):
    """Number of runs by the word for their totals."""
    rows = store.query("SELECT Totals, count() AS n FROM mast_runs GROUP BY Totals")
    return {row["Totals"]: row["n"] for row in rows}


def test_a_repair_that_is_stopped_goes_on_where_it_ended(dozen, monkeypatch):
    migrate(dozen, repairs=False)
    check_schema(dozen)
    assert words(dozen) == {"being counted": 13}
    stop = threading.Event()
    done = []

    def left(store):
        for piece in all_left(store):
            yield piece
            done.append(piece)
            if len(done) == 4:
                stop.set()

    all_left = totals_repair._left
    monkeypatch.setattr(totals_repair, "_left", left)
    assert repair(dozen, stop) is False
    first = repaired(dozen)
    assert 4 <= first < 13
    assert words(dozen) == {"exact": first, "being counted": 13 - first}
    inserted = []
    command = Store.command

    def watched(self, sql, *args, **options):
        inserted.append(sql)
        return command(self, sql, *args, **options)

    monkeypatch.setattr(Store, "command", watched)
    assert migrate(dozen) == [12]
    everything = [*exact(TRACE), *exact(*MANY, number=20)]
    assert runs(dozen) == sorted(everything, key=lambda row: row["TraceId"])
    states = [sql for sql in inserted if "groupUniqArray" in sql]
    assert 0 < len(states) <= 13 - first
    assert migrate(dozen) == []


def test_totals_are_about_only_once_the_spans_were_looked_for(dozen):
    dozen.command("ALTER TABLE otel_traces DELETE WHERE TraceId = {t:String}", {"t": MANY[0]},
                  settings={"mutations_sync": 2})  # fmt: skip
    migrate(dozen, repairs=False)
    assert words(dozen) == {"being counted": 13}
    assert repair(dozen)
    assert words(dozen) == {"exact": 12, "about": 1}
    # Its spans come again: by themselves, and counted by another repair.
    SpanWriter(dozen).write([calls(MANY[0], number=20)], token="again")
    dozen.command(totals_repair._MARK, totals_repair.RunRange("", MANY[0], MANY[0]).params)
    assert words(dozen) == {"exact": 13}


@pytest.mark.parametrize("ended", [True, False])
def test_an_earlier_versions_repair_counts_once_it_has_ended(old, ended):
    """A run that it then left as it was has lost its spans; where it had not ended, they are yet to be looked for."""
    make_version(old, BEFORE_COUNTING)
    if not ended:
        unrecorded = "ALTER TABLE mast_schema_migrations DELETE WHERE Version = 12"
        old.command(unrecorded, settings={"mutations_sync": 2})
    migrate(old, repairs=False)
    assert words(old) == {"about" if ended else "being counted": 1}


_KILLED = """
import sys
from mast_trace_collector.storage import Store, migrate, totals_repair
from mast_trace_collector.storage import totals_repair

totals_repair.SPANS_AT_ONCE = 30
left = totals_repair._left

def told(store):
    for piece in left(store):
        yield piece
        print(piece, flush=True)

totals_repair._left = told
with Store.open(sys.argv[1]) as store:
    migrate(store)
"""


@pytest.mark.skipif(bool(SERVER), reason="about the embedded engine, while a server is tested")
@pytest.mark.parametrize("kills", [2])
def test_a_killed_repair_loses_nothing(dozen, kills):
    url = dozen.url
    dozen.close()
    for _ in range(kills):
        with subprocess.Popen(
            [sys.executable, "-c", _KILLED, url], stdout=subprocess.PIPE, text=True
        ) as process:
            for _ in range(3):
                assert process.stdout.readline()
            process.kill()
    with Store.open(url) as store:
        assert 3 * kills <= repaired(store) < 13
        assert migrate(store) == NEW[NEW.index(12) :]
        assert repaired(store) == 13


def test_many_may_repair_while_spans_arrive(dozen):
    migrate(dozen, repairs=False)
    writer = SpanWriter(dozen)
    threads = [threading.Thread(target=migrate, args=(dozen,)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for number in range(0, 10, 2):
        sent = [calls(trace, number=25) for trace in MANY[number : number + 2]]
        writer.write(
            sent,
            token=f"meanwhile {number}",
            project_of=[project_of(number), project_of(number + 1)].__getitem__,
        )
    for thread in threads:
        thread.join()
    assert {row["TraceId"]: row["InputTokens"] for row in runs(dozen)} == {
        TRACE: 100 * CALLS,
        **dict.fromkeys(MANY[:10], 2500),
        **dict.fromkeys(MANY[10:], 2000),
    }
    assert repaired(dozen) == 13


def test_what_an_insert_of_before_writes_late_is_repaired_too(dozen, monkeypatch):
    """An insert that had begun when the view was changed ends later, in a run that was repaired."""
    trace = MANY[0]
    (late,) = dozen.query(
        "SELECT Day, Spans, Errors, Tokens FROM mast_run_states WHERE TraceId = {t:String}",
        {"t": trace},
    )
    dozen.command("ALTER TABLE mast_run_states DELETE WHERE TraceId = {t:String}", {"t": trace},
                  settings={"mutations_sync": 2})  # fmt: skip
    left = totals_repair._left

    def late_insert(store):
        yield from left(store)
        store.insert("mast_run_states", [{"TraceId": trace, **late}])

    monkeypatch.setattr(totals_repair, "_left", late_insert)
    migrate(dozen)
    assert repaired(dozen) == 13


def test_it_is_done_beside_everything_else_and_tried_again(dozen, monkeypatch):
    migrate(dozen, repairs=False)
    monkeypatch.setattr(repair_later, "_SECONDS_BEFORE_ANOTHER_TRY", 0.05)
    dozen.command("RENAME TABLE otel_traces TO away")
    later = RepairLater(dozen)
    later.start()
    assert repaired(dozen) == 0
    dozen.command("RENAME TABLE away TO otel_traces")
    later.join(60)
    assert not later.is_alive()
    assert repaired(dozen) == 13
    assert migrate(dozen) == []


def test_stopping_it_ends_it(dozen):
    migrate(dozen, repairs=False)
    later = RepairLater(dozen)
    later.stop()
    later.start()
    later.stop()
    assert not later.is_alive()
    assert migrate(dozen) == [12]
