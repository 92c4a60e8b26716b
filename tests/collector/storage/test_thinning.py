"""Successful runs are thinned after their verdict; failures, labelled and replayed runs stay whole."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from mast_trace.exceptions import StorageError
from mast_trace.taxonomy import FAILURE_MODES
from mast_trace_collector.storage.removal import thinning
from mast_trace_collector.storage.removal.erasure import erase, of_runs
from mast_trace_collector.storage.removal.thinning import beyond_sample, thin, was_left_out
from mast_trace_collector.storage.runs import finished_runs

NOW = datetime.now(timezone.utc)
OLD, CUT = NOW - timedelta(days=20), NOW - timedelta(days=14)


def trace(number: int) -> str:
    return f"{number:032x}"


def fill(
    store: Any,
    numbers: range,
    outcome: str = "success",
    *,
    at: datetime = OLD,
    judged: bool = True,
    project: str = "a",
    version: str = "j",
) -> list[str]:
    """Store runs of two spans and one log record."""
    ids = [trace(number) for number in numbers]
    said = {"gen_ai.operation.name": "invoke_workflow", "mast.run.outcome": outcome}
    common = {"Timestamp": at, "ResourceAttributes": {"mast.project": project}}
    span = {**common, "ServiceName": "shop", "Duration": 1_000_000}
    root = {**span, "SpanId": "1" * 16, "ParentSpanId": "", "SpanAttributes": said}
    child = {**span, "SpanId": "2" * 16, "ParentSpanId": "1" * 16, "SpanAttributes": {}}
    store.insert("otel_traces", [{**each, "TraceId": i} for i in ids for each in (root, child)])
    store.insert("otel_logs", [{**common, "TraceId": each, "Body": "x"} for each in ids])
    if judged:
        judge(store, ids, outcome, version)
    return ids


def judge(store: Any, ids: list[str], outcome: str, version: str = "j") -> None:
    runs = store.query("SELECT * FROM mast_runs WHERE TraceId IN {ids:Array(String)}", {"ids": ids})
    store.insert(
        "mast_verdicts",
        [
            {
                "Project": run["Project"],
                "TraceId": run["TraceId"],
                "Fingerprint": run["Fingerprint"],
                "JudgeVersion": version,
                "JudgedAt": NOW,
                "Status": "ok",
                "Method": "local",
                "ServiceName": run["ServiceName"],
                "RunStart": run["Start"],
                "RunEnd": run["End"],
                "RunSeen": run["LastSeen"],
                "RunOutcome": run["Outcome"],
                "Outcome": outcome or "unknown",
                "Examined": list(FAILURE_MODES),
            }
            for run in runs
        ],
    )


def late_span(store: Any, trace_id: str) -> None:
    late = {"Timestamp": OLD, "TraceId": trace_id, "SpanId": "9" * 16, "ParentSpanId": "1" * 16}
    store.insert("otel_traces", [{**late, "ResourceAttributes": {"mast.project": "a"}}])


def with_spans(store: Any) -> set[str]:
    return {row["TraceId"] for row in store.query("SELECT DISTINCT TraceId FROM otel_traces")}


def counts(store: Any) -> list[tuple[str, str, int, int]]:
    rows = store.query(
        "SELECT Project, ServiceName, count() AS Runs, sum(Spans) AS Spans FROM mast_left_out FINAL "
        "WHERE Done GROUP BY Project, ServiceName ORDER BY Project"
    )
    return [(row["Project"], row["ServiceName"], row["Runs"], row["Spans"]) for row in rows]


def test_only_judged_successes_before_the_time_go(store):
    successes = set(fill(store, range(20)))
    young = set(fill(store, range(100, 105), at=NOW - timedelta(days=2)))
    others = set(fill(store, range(200, 205), "failure")) | set(fill(store, range(210, 215), ""))
    unjudged = set(fill(store, range(220, 225), judged=False))
    told = beyond_sample(store, CUT, 0.0)
    assert with_spans(store) == successes | young | others | unjudged, "asking changes nothing"
    done = thin(store, CUT, 0.0)
    assert (told.runs, told.spans) == (done.runs, done.spans) == (20, 40)
    assert with_spans(store) == young | others | unjudged
    assert counts(store) == [("a", "shop", 20, 40)]
    logs = {row["TraceId"] for row in store.query("SELECT DISTINCT TraceId FROM otel_logs")}
    assert logs == young | others | unjudged
    states = store.query("SELECT count() AS n FROM mast_runs")[0]["n"]
    assert states == 40, "every run is still counted"


def test_labelled_replayed_and_injected_runs_stay(store):
    ids = fill(store, range(6))
    at = {"RunEnd": OLD, "Project": "a"}
    store.insert("mast_human_labels", [{"Project": "a", "TraceId": ids[0], "LabelledAt": NOW}])
    store.insert("mast_confirmations", [{**at, "TraceId": ids[1]}])
    store.insert("mast_injections", [{**at, "TraceId": ids[2], "FaultId": "f"}])
    store.insert("mast_replay_plans", [{**at, "TraceId": ids[3], "PlanId": "p"}])
    # Another project's label of the same id keeps nothing here.
    store.insert("mast_human_labels", [{"Project": "b", "TraceId": ids[4], "LabelledAt": NOW}])
    assert thin(store, CUT, 0.0).runs == 2
    assert with_spans(store) == set(ids[:4])


def test_a_success_that_became_a_failure_or_changed_stays(store):
    ids = fill(store, range(3))
    late_span(store, ids[0])
    judge(store, ids[1:2], "failure", "newer")
    store.command(
        "INSERT INTO mast_run_states (Project, TraceId, Said) VALUES "
        f"('a', '{ids[1]}', concat('1', '9999999999999999999', 'failure', '\\n', ''))"
    )
    assert thin(store, CUT, 0.0).runs == 1
    assert with_spans(store) == set(ids[:2])


def test_a_recorded_outcome_comes_before_the_judges(store):
    """As everywhere: the judge's counts where none was recorded."""
    told = {("failure", "success"): False, ("success", "failure"): True, ("", "success"): True}
    runs = {}
    for number, (recorded, judged) in enumerate(told):
        (runs[recorded, judged],) = fill(store, range(number, number + 1), recorded, judged=False)
        judge(store, [runs[recorded, judged]], judged)
    thin(store, CUT, 0.0)
    assert with_spans(store) == {runs[each] for each, goes in told.items() if not goes}


def test_the_sample_is_of_the_ids_alone_and_grows_with_the_share(store):
    ids = set(fill(store, range(400)))
    assert thin(store, CUT, 1.0).runs == 0
    done = thin(store, CUT, 0.3)
    kept = with_spans(store)
    assert done.runs == 400 - len(kept)
    assert 80 < len(kept) < 160
    assert thin(store, CUT, 0.3).runs == 0, "again it is the same sample"
    thin(store, CUT, 0.1)
    assert with_spans(store) < kept
    gone = len(ids - with_spans(store))
    assert counts(store) == [("a", "shop", gone, 2 * gone)]


@pytest.mark.parametrize("where", ["planned", "half deleted", "deleted"])
def test_a_thinning_that_was_killed_counts_nothing_twice(store, monkeypatch, where):
    ids = fill(store, range(10))
    killed = StorageError("killed")

    def before_deleting(_: object) -> None:
        raise killed

    def in_the_middle(opened: Any) -> None:
        opened.command(
            f"ALTER TABLE otel_traces DELETE WHERE TraceId = '{ids[0]}'",
            settings={"mutations_sync": 2},
        )
        raise killed

    real = thinning.delete_planned

    def after_deleting(opened: Any) -> None:
        real(opened)
        raise killed

    part = {"planned": before_deleting, "half deleted": in_the_middle, "deleted": after_deleting}
    with monkeypatch.context() as patch:
        patch.setattr(thinning, "delete_planned", part[where])
        with pytest.raises(StorageError):
            thin(store, CUT, 0.0)
    assert counts(store) == [], "a run is counted when its spans are gone"
    fill(store, range(50, 53))
    told = beyond_sample(store, CUT, 0.0)
    done = thin(store, CUT, 0.0)
    assert (told.runs, done.runs, done.resumed) == (13, 13, 10)
    assert counts(store) == [("a", "shop", 13, 26)]
    assert with_spans(store) == set()


def test_projects_are_thinned_apart(store):
    fill(store, range(5), project="a")
    fill(store, range(5), project="b")
    assert thin(store, CUT, 0.0, project="a").runs == 5
    assert counts(store) == [("a", "shop", 5, 10)]
    rows = store.query("SELECT DISTINCT Project FROM otel_traces")
    assert [row["Project"] for row in rows] == ["b"]


def test_the_judge_leaves_these_runs_alone(store):
    """Another version of the judge would find no steps, and its verdict would replace the good one."""
    ids = fill(store, range(4))
    failed = fill(store, range(20, 22), "failure")
    thin(store, CUT, 0.0)
    for recent in (None, 3600.0):
        due = finished_runs(store, judge_version="next", quiet=0, recent=recent)
        assert {run.trace_id for run in due} == set(failed)
    # Nor is a late span judged alone, however long ago the others came.
    late_span(store, ids[0])
    ages = "ALTER TABLE mast_left_out UPDATE RunSeen = RunSeen - toIntervalDay(30) WHERE 1"
    for _ in range(2):
        due = finished_runs(store, judge_version="next", quiet=0)
        assert {run.trace_id for run in due} == set(failed)
        store.command(ages, settings={"mutations_sync": 2})


def test_an_erased_run_is_counted_no_more(store):
    ids = fill(store, range(3))
    thin(store, CUT, 0.0)
    assert was_left_out(store, ids[0], "a") is not None
    assert was_left_out(store, ids[0], "b") is None
    erase(store, *of_runs(store, ids[:1]))
    assert counts(store) == [("a", "shop", 2, 4)]


def test_a_share_beyond_all_is_refused(store):
    for share in (-0.1, 1.1, float("nan")):
        with pytest.raises(ValueError, match="from 0 to 1"):
            thin(store, CUT, share)
