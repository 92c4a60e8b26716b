"""Reads the trajectories of finished runs from the store, many at a time."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from typing import TYPE_CHECKING

from mast_trace.trajectory import SpanRecord, Trajectory, read_trajectory
from mast_trace_collector.storage.run_spans import RunSpans
from mast_trace_collector.storage.span_records import RECORD_COLUMNS, record
from mast_trace_judge.store.long_runs import PAGE_BYTES, read_run

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mast_trace_collector.storage.runs import RunSummary
    from mast_trace_collector.storage.store import Store

_MOST_BYTES = 128 * 1024 * 1024
"""Bytes that the spans of several runs may take together; beyond, each run is read alone."""
_SPANS = f"""
SELECT {RECORD_COLUMNS}, toString(Project) AS RunProject
FROM otel_traces
WHERE TraceId IN {{traces:Array(String)}}
ORDER BY ReceivedAt DESC
LIMIT 1 BY Project, TraceId, SpanId
SETTINGS max_result_bytes = {_MOST_BYTES}
"""  # noqa: S608  # made of constants


def spans_of_runs(
    store: Store, runs: Iterable[RunSummary]
) -> dict[tuple[str, str], list[SpanRecord]]:
    """Return the spans of runs by project and trace id; of a span that came twice, the latest.

    Raises:
        StorageError: the database does not answer, or these are more than may be held at a time:
            `read_alone` reads any run.
    """
    spans: dict[tuple[str, str], list[SpanRecord]] = defaultdict(list)
    traces = sorted({run.trace_id for run in runs})
    if traces:
        for row in store.query(_SPANS, {"traces": traces}):
            spans[row["RunProject"], row["TraceId"]].append(record(row))
    return spans


def read_alone(store: Store, run: RunSummary) -> Trajectory:
    """Read one run of any length, in bounded memory; see `mast_trace_judge.store.long_runs`.

    Raises:
        StorageError: the database does not answer.
    """
    pages = RunSpans(store, run.trace_id, project=run.project, page_bytes=PAGE_BYTES)
    return _with_outcome(run, read_run(pages))


def trajectory_of(run: RunSummary, spans: Sequence[SpanRecord]) -> Trajectory:
    """Read a run from its spans, with the outcome that was said of it last."""
    return _with_outcome(run, read_trajectory(spans))


def _with_outcome(run: RunSummary, trajectory: Trajectory) -> Trajectory:
    if not run.outcome:
        return trajectory
    return dataclasses.replace(trajectory, outcome=run.outcome, outcome_reason=run.outcome_reason)
