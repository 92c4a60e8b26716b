"""Lessons of the runs in a store, the latest first."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from mast_trace_collector.storage.runs import run_summary
from mast_trace_judge.batch import read_alone
from mast_trace_judge.store.labels import labels_of
from mast_trace_judge.store.records import utc
from mast_trace_judge.store.verdicts import load_latest
from mast_trace_lab.feedback.lessons import RunLesson, lessons_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from mast_trace_collector.storage.store import Store

MOST_RUNS: Final = 50
"""Runs that are read for lessons, the latest ones."""

_CANDIDATES = """
SELECT Project, TraceId, max(RunEnd) AS Ended FROM mast_findings
WHERE Outcome != 'success' AND Kind = '' AND Method != 'provisional' AND ({workflow:String} = '' OR Name = {workflow:String})
    AND ({run:String} = '' OR TraceId = {run:String})
    AND (isNull({project:Nullable(String)}) OR Project = {project:Nullable(String)})
    AND (has(LookFirst.Basis, 'record')
        OR (Project, TraceId) GLOBAL IN (SELECT Project, TraceId FROM mast_confirmations WHERE isNotNull(OriginStep))
        OR (Project, TraceId) GLOBAL IN (SELECT Project, TraceId FROM mast_human_labels WHERE isNotNull(DecisiveStep)))
    AND (NOT {untouched:Bool} OR (Project, TraceId) GLOBAL NOT IN
        (SELECT Project, TraceId FROM mast_experiment_runs
         WHERE FeedbackId != '' OR (Experiment != '' AND Arm != 'none')))
GROUP BY Project, TraceId
ORDER BY Ended DESC, TraceId
LIMIT {limit:UInt32}
"""
_TASK = """
SELECT max(Task) AS Task FROM mast_experiment_runs
WHERE Project = {project:String} AND TraceId = {run:String}
"""


@dataclass(frozen=True)
class Taught:
    """A lesson with the run that it comes from.

    Attributes:
        lesson: the lesson.
        project: of the run.
        run_end: end of the run, whose retention a stored lesson follows.
    """

    lesson: RunLesson
    project: str
    run_end: datetime


def taught(
    store: Store,
    *,
    project: str | None = None,
    run: str = "",
    workflow: str = "",
    agent: str = "",
    untouched: bool = False,
    most_runs: int = MOST_RUNS,
    seconds: float = math.inf,
) -> Iterator[Taught]:
    """Yield the lessons of the latest failed runs; of equal agent and failure mode the first alone.

    Args:
        store: the database.
        project: only this project's runs.
        run: trace id of the only run to learn from.
        workflow: only runs of this workflow.
        agent: only lessons about this agent.
        untouched: leaves out runs that were given lessons or a placebo, and all arms but ``none``.
        most_runs: runs that are read at most.
        seconds: time after which no further run is read.

    Raises:
        StorageError: the database does not answer.
    """
    until = time.monotonic() + seconds
    rows = store.query(
        _CANDIDATES,
        {
            "project": project,
            "run": run,
            "workflow": workflow,
            "untouched": untouched,
            "limit": most_runs,
        },
    )
    seen: set[tuple[str, str]] = set()
    for row in rows:
        if time.monotonic() > until:
            return
        for lesson in _of_run(store, row["Project"], row["TraceId"]):
            kind = (lesson.agent, lesson.mode or lesson.quote)
            if kind in seen or (agent and lesson.agent != agent):
                continue
            seen.add(kind)
            yield Taught(lesson, row["Project"], utc(row["Ended"]))


def _of_run(store: Store, project: str, trace_id: str) -> list[RunLesson]:
    summary = run_summary(store, trace_id, project=project)
    if summary is None or not summary.spans or summary.kind:
        return []
    verdict = load_latest(store, trace_id, project=project)
    if verdict is not None and verdict.fingerprint != summary.fingerprint:
        return []  # the run has changed: its steps may be others until it is judged again
    labels = [each for each in labels_of(store, trace_id) if each.project == project]
    found = lessons_of(
        read_alone(store, summary),
        verdict,
        labels,
        trace_id=trace_id,
        answers=(summary.outcome_reason, *(label.note for label in labels)),
    )
    if not found:
        return []
    (task,) = store.query(_TASK, {"project": project, "run": trace_id})
    return [each.model_copy(update={"task_key": task["Task"]}) for each in found]
