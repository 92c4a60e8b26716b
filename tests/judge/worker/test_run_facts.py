"""Facts of runs are written once, are those of all spans, and no run is missing without them."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from pattern_runs import NOW, add_run, judge

from mast_trace.exceptions import StorageError
from mast_trace_collector.storage.removal import erasure
from mast_trace_collector.storage.removal.thinning import thin
from mast_trace_dashboards.queries import QUERIES
from mast_trace_judge.store import facts
from mast_trace_judge.store.facts import FactsIndexer

if TYPE_CHECKING:
    from fixture_types import Patch

    from mast_trace_collector.storage import Store

OLD = NOW - timedelta(days=20)


def call(store: Store, trace: str, number: int, at: Any = NOW, project: str = "") -> None:
    """Add a model call to a run."""
    attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "small",
        "gen_ai.usage.input_tokens": "10",
    }
    span = {"TraceId": trace, "SpanId": f"{number:016x}", "ParentSpanId": "f" * 16}
    row = {**span, "Timestamp": at, "SpanAttributes": attributes}
    store.insert("otel_traces", [{**row, "ResourceAttributes": {"mast.project": project}}])


def calls(store: Store) -> dict[str, int]:
    return {row["Key"]: row["Calls"] for row in QUERIES["costs"].run(store, parts=["run"])}


def stored(store: Store) -> list[str]:
    return [
        row["TraceId"]
        for row in store.query("SELECT TraceId FROM mast_run_facts FINAL ORDER BY TraceId")
    ]


def index(store: Store) -> int:
    return FactsIndexer(store, quiet=0).index()


def test_a_late_span_counts_at_once_and_the_newest_facts_win(store: Store) -> None:
    run = add_run(store, 1)
    call(store, run, 1)
    assert (index(store), calls(store)) == (1, {run: 1})
    assert index(store) == 0
    call(store, run, 2)
    assert calls(store) == {run: 2}
    assert (index(store), calls(store)) == (1, {run: 2})
    assert index(store) == 0


def test_a_run_has_the_version_with_which_it_began(store: Store) -> None:
    for seconds in (1, 0):  # stored in any order
        at = {"Timestamp": NOW + timedelta(seconds=seconds), "SpanId": f"{seconds:016x}"}
        resource = {"service.version": f"v{seconds}"}
        span = {**at, "SpanAttributes": {"gen_ai.operation.name": "chat"}}
        store.insert(
            "otel_traces", [{**span, "TraceId": "ab" * 16, "ResourceAttributes": resource}]
        )
    index(store)
    assert store.query("SELECT Version FROM mast_run_facts FINAL") == [{"Version": "v0"}]


def test_runs_of_two_projects_with_one_id_have_their_own_facts(store: Store) -> None:
    for number, project in enumerate(("ours", "theirs", "theirs")):
        call(store, "ab" * 16, number, project=project)
    assert index(store) == 2
    # All rows: one of the other project's facts would be merged away at some time, or the right one.
    rows = store.query("SELECT Project, length(Calls) AS Count FROM mast_run_facts ORDER BY ALL")
    assert [(row["Project"], row["Count"]) for row in rows] == [("ours", 1), ("theirs", 2)]


def test_a_run_of_which_more_may_come_waits_and_one_without_operations_is_written_once(
    store: Store,
) -> None:
    store.insert("otel_traces", [{"TraceId": "ab" * 16, "SpanId": "1" * 16, "Timestamp": NOW}])
    assert FactsIndexer(store).index() == 0
    assert (index(store), index(store), stored(store)) == (1, 0, ["ab" * 16])


def test_a_killed_pass_goes_on_with_the_next_newest(store: Store, monkeypatch: Patch) -> None:
    """Those of one pass may be of different days."""
    monkeypatch.setattr(facts, "AT_ONCE", 2)
    days = [NOW - timedelta(days=number) for number in range(1, 6)]
    runs = [add_run(store, number, at=at) for number, at in enumerate(days, 1)]
    for number, (run, at) in enumerate(zip(runs, days, strict=True)):
        call(store, run, number, at)
    seen = []
    while index(store):
        seen.append(len(stored(store)))
    assert (seen, stored(store)) == ([2, 4, 5], runs)
    assert calls(store) == dict.fromkeys(runs, 1)


def test_a_run_whose_facts_cannot_be_written_is_missing_nowhere(
    store: Store, monkeypatch: Patch
) -> None:
    good, bad = (add_run(store, number) for number in (1, 2))
    for number, run in enumerate((good, bad)):
        call(store, run, number)
    write = facts.write_facts

    def refuse(store: Store, runs: Any) -> None:
        if any(row["OfTrace"] == bad for row in runs):
            raise StorageError("Code: 43. DB::Exception: no such thing")
        write(store, runs)

    monkeypatch.setattr(facts, "write_facts", refuse)
    assert (index(store), stored(store)) == (1, [good])
    assert calls(store) == {good: 1, bad: 1}


@pytest.mark.parametrize("known", [True, False], ids=["written before", "not written before"])
def test_a_run_keeps_its_facts_when_its_spans_are_left_out(store: Store, known: bool) -> None:
    run = add_run(store, 1, outcome="success", at=OLD, judged=False)
    call(store, run, 1, OLD)
    judge(store, run, code="")
    if known:
        index(store)
    assert thin(store, NOW, 0.0).runs == 1
    assert calls(store) == {run: 1}
    for late in (2, 3):  # the only spans now
        call(store, run, late, OLD)
    assert (index(store), calls(store)) == (0, {run: 1})


def test_an_erased_run_has_no_facts(store: Store) -> None:
    run, other = (add_run(store, number) for number in (1, 2))
    index(store)
    erasure.erase(store, *erasure.of_runs(store, [run]))
    call(store, run, 9)
    index(store)
    assert stored(store) == [other]
