"""Runs of one id in several projects."""

from __future__ import annotations

import dataclasses
import time
from typing import TYPE_CHECKING

from long_runs import stored, team

from mast_trace_collector.storage.runs import run_summary
from mast_trace_judge.batch import read_alone
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
