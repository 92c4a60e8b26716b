"""Reads finished runs, and applies the local layers to them, a chunk of them in one thread."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from mast_trace.trajectory import SpanRecord, Trajectory, read_trajectory
from mast_trace_collector.storage.run_spans import RunSpans
from mast_trace_collector.storage.runs import RunSummary, spans_of
from mast_trace_judge.local.long_runs import MOST_SPANS, PAGE_BYTES, read_run
from mast_trace_judge.local.outcome import with_said_outcome

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from mast_trace_collector.storage.store import Store
    from mast_trace_judge.judge import Judge
    from mast_trace_judge.local.layers import LocalFindings
    from mast_trace_judge.store.good_runs import GoodRuns
    from mast_trace_judge.verdict import Verdict


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


_SPANS_AT_ONCE = 4000
_RUNS_AT_ONCE = 100
_NO_RUN = "-"


@dataclass(frozen=True)
class JudgedLocally:
    """A run after the local layers.

    Attributes:
        verdict: the local one; final unless the model is to read the run.
        for_model: the input of `Judge.judge_further`, where the model is to read the run.
        error: set where the run could not be judged.
    """

    run: RunSummary
    verdict: Verdict | None = None
    for_model: tuple[RunSummary, Trajectory, LocalFindings] | None = None
    error: Exception | None = None


def chunks_of(runs: Sequence[RunSummary]) -> Iterator[list[RunSummary]]:
    """Divide runs so that the spans of a chunk fit into memory and few runs wait for others."""
    chunk: list[RunSummary] = []
    spans = 0
    for run in runs:
        if chunk and (spans + run.spans > _SPANS_AT_ONCE or len(chunk) == _RUNS_AT_ONCE):
            yield chunk
            chunk, spans = [], 0
        chunk.append(run)
        spans += run.spans
    if chunk:
        yield chunk


def judge_chunk(
    store: Store,
    judge: Judge,
    runs: Sequence[RunSummary],
    good: GoodRuns | None = None,
    *,
    closed: bool = False,
) -> list[JudgedLocally]:
    """Read the runs and apply the local layers.

    Args:
        store: the database.
        judge: applies them.
        runs: a chunk of them.
        good: reads good runs, with which failed ones are compared.
        closed: leave out runs of which a span is known to be missing, and those that cannot be read together.

    Raises:
        StorageError: the database does not answer at all.
    """
    if all(run.spans <= MOST_SPANS for run in runs):
        try:
            spans = spans_of(
                store, [run.trace_id for run in runs], [(run.start, run.end) for run in runs]
            )
        except Exception:  # noqa: BLE001 - each run is read alone, and fails alone
            spans_of(store, [_NO_RUN])  # raises where the failure is not about these runs
        else:
            return [
                _judge_one(
                    judge,
                    run,
                    partial(trajectory_of, spans=spans.pop((run.project, run.trace_id), ())),
                    good,
                )
                for run in runs
                if not closed or _is_closed(spans.get((run.project, run.trace_id), ()))
            ]
    if closed:
        return []
    return [_judge_one(judge, run, partial(read_alone, store), good) for run in runs]


def _is_closed(spans: Sequence[SpanRecord]) -> bool:
    """Return whether the parent of each span has come."""
    return {span.parent_span_id for span in spans} <= {"", *(span.span_id for span in spans)}


def _judge_one(
    judge: Judge, run: RunSummary, read: Callable[[RunSummary], Trajectory], good: GoodRuns | None
) -> JudgedLocally:
    try:
        trajectory = read(run)
        program = trajectory.task, run.project, run.service, run.name
        nearest = None if good is None else partial(good.nearest, run.trace_id, *program)
        local = judge.apply_rules(trajectory, nearest)
        if trajectory.steps and judge.wants_model(run, local):
            found = run, trajectory, local
            return JudgedLocally(run, judge.while_reading(*found), found)
        return JudgedLocally(run, verdict=judge.without_model(run, trajectory, local))
    except Exception as error:  # noqa: BLE001 - one run's failure is that run's verdict
        return JudgedLocally(run, error=error)
