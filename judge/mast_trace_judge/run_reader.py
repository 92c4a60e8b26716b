"""Reads the trajectories of finished runs from the store, many at a time."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from typing import TYPE_CHECKING

from mast_trace.trajectory import SpanRecord, Trajectory
from mast_trace_collector.storage.records import RECORD_COLUMNS, record

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mast_trace_collector.storage.runs import FinishedRun
    from mast_trace_collector.storage.store import Store

_SPANS = f"""
SELECT {RECORD_COLUMNS}, toString(Project) AS RunProject
FROM otel_traces
WHERE TraceId IN {{traces:Array(String)}}
ORDER BY ReceivedAt DESC
LIMIT 1 BY Project, TraceId, SpanId
"""  # noqa: S608  # made of constants


def spans_of_runs(
    store: Store, runs: Iterable[FinishedRun]
) -> dict[tuple[str, str], list[SpanRecord]]:
    """Return the spans of runs by project and trace id; of a span that came twice, the latest.

    Raises:
        StorageError: the database does not answer.
    """
    spans: dict[tuple[str, str], list[SpanRecord]] = defaultdict(list)
    traces = sorted({run.trace_id for run in runs})
    if traces:
        for row in store.query(_SPANS, {"traces": traces}):
            spans[row["RunProject"], row["TraceId"]].append(record(row))
    return spans


def trajectory_of(run: FinishedRun, spans: Sequence[SpanRecord]) -> Trajectory:
    """Read a run from its spans, with the outcome that was said of it last."""
    trajectory = Trajectory.from_spans(spans)
    if not run.outcome:
        return trajectory
    return dataclasses.replace(trajectory, outcome=run.outcome, outcome_reason=run.outcome_reason)
