"""Reads the trajectories of finished runs from the store, many at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mast_trace.trajectory import SpanRecord, Trajectory, read_trajectory
from mast_trace_collector.storage.run_spans import RunSpans
from mast_trace_judge.local.long_runs import PAGE_BYTES, read_run
from mast_trace_judge.local.outcome import with_said_outcome

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mast_trace_collector.storage.runs import RunSummary
    from mast_trace_collector.storage.store import Store


def read_alone(store: Store, run: RunSummary) -> Trajectory:
    """Read one run of any length, in bounded memory; see `mast_trace_judge.local.long_runs`.

    Raises:
        StorageError: the database does not answer.
    """
    pages = RunSpans(store, run.trace_id, project=run.project, page_bytes=PAGE_BYTES)
    return with_said_outcome(run, read_run(pages))


def trajectory_of(run: RunSummary, spans: Sequence[SpanRecord]) -> Trajectory:
    """Read a run from its spans, with the outcome that was recorded last."""
    return with_said_outcome(run, read_trajectory(spans))
