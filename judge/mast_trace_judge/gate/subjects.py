"""The run that an assertion is about, whatever form a test passes it in."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from mast_trace.replay.run_files import runs_of
from mast_trace.testing import CapturedSpans, ReplayedRun
from mast_trace.trajectory import Trajectory
from mast_trace_judge.gate.case_files import Case

if TYPE_CHECKING:
    from mast_trace.trajectory import SpanRecord

AnyRun: TypeAlias = Trajectory | CapturedSpans | ReplayedRun | Case | str | Path
"""The forms of a run: captured or replayed spans with one run, a trajectory, a case, or a file of one run."""


@dataclass(frozen=True)
class Subject:
    """One run.

    Attributes:
        run: its steps.
        spans: its spans; None where only the steps are known.
        replayed: whether its models were answered from a record, so that their calls took no time.
    """

    run: Trajectory
    spans: tuple[SpanRecord, ...] | None = None
    replayed: bool = False

    @property
    def title(self) -> str:
        """The name and the beginning of the id, for messages."""
        return f"run {self.run.name or 'without a name'} ({self.run.trace_id[:8]})"


def subject_of(run: AnyRun) -> Subject:
    """Return the run that is meant.

    Raises:
        AssertionError: several runs were recorded, or none.
        TypeError: it is in no form that an assertion reads.
        ValueError: a file holds no run, or several.
        OSError: the file cannot be read.
    """
    if isinstance(run, ReplayedRun):
        return Subject(run.captured.trajectory(), tuple(run.captured.records), replayed=True)
    if isinstance(run, CapturedSpans):
        return Subject(run.trajectory(), tuple(run.records))
    if isinstance(run, Case):
        return Subject(run.trajectory)
    if isinstance(run, Trajectory):
        return Subject(run)
    if isinstance(run, str | Path):
        return Subject(runs_of(run)[-1])
    raise TypeError(
        f"an assertion takes captured spans, a replayed run, a trajectory, a case or a file of one run, "
        f"not {type(run).__name__}"
    )
