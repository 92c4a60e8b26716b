"""Runs of one id in several projects."""

from __future__ import annotations

import dataclasses
import time
from typing import TYPE_CHECKING

from long_runs import stored, team

from mast_trace_collector.storage.runs import run_summary
from mast_trace_judge.batch import read_alone
from mast_trace_judge.multi_agent.profile import MOST_SPANS, read_team_runs
from mast_trace_lab.replay.replaying import earlier_runs

if TYPE_CHECKING:
    from mast_trace_collector.storage import Store

BEGIN = time.time_ns() // 10**6 * 10**6 - 3600 * 10**9
TEAM, LOOP = "1" * 32, "2" * 32


def test_a_run_is_read_and_continued_in_its_own_project(store: Store) -> None:
    for project, spans in (("one", 6), ("two", 12)):
        rows = stored(team(spans), TEAM, BEGIN)
        of_it = {"ResourceAttributes": {"mast.project": project}}
        store.insert("otel_traces", [{**row, **of_it} for row in rows])
    lengths = set()
    for project in ("one", "two"):
        run = run_summary(store, TEAM, project=project)
        assert run is not None
        alone = read_alone(store, run)
        lengths.add(len(alone.steps))
        assert len(alone.steps) < run.spans
        later = dataclasses.replace(alone, trace_id=LOOP, resumes=TEAM)
        assert earlier_runs(store, run, later, None) == (alone,)
    assert len(lengths) == 2


def test_a_team_is_measured_on_the_runs_of_its_project_by_what_was_recorded(store: Store) -> None:
    """A run beyond the longest is passed over, and counted."""
    lengths = {("one", TEAM): 6, ("two", TEAM): 12, ("two", LOOP): MOST_SPANS + 1}
    for (project, trace_id), spans in lengths.items():
        of_it = {"ResourceAttributes": {"mast.project": project}}
        rows = stored(team(min(spans, 12)), trace_id, BEGIN)
        store.insert("otel_traces", [{**row, **of_it} for row in rows])
    rows = [
        {"Project": project, "TraceId": trace_id, "Spans": spans, "Outcome": outcome}
        for ((project, trace_id), spans), outcome in zip(
            lengths.items(), ("failure", "", "success"), strict=True
        )
    ]
    found, done = zip(*read_team_runs(store, rows), strict=True)
    assert done == (1, 2, 3)
    assert [run and run.trajectory.outcome for run in found] == ["failure", "", None]
    assert len(found[0].actions) < len(found[1].actions)
