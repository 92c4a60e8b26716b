"""The interrupted runs that a run continues: a replay of it has to go through them, too."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mast_trace_collector.storage.runs import run_summary
from mast_trace_judge.store.runs import read_alone
from mast_trace_lab.replay.unfit import NotConfirmable

if TYPE_CHECKING:
    from mast_trace.trajectory import Trajectory
    from mast_trace_collector.storage import Store
    from mast_trace_collector.storage.runs import RunSummary


def continued(store: Store, run: RunSummary, recorded: Trajectory) -> tuple[Trajectory, ...]:
    """Return the interrupted runs that a run continues, the first one first.

    Raises:
        NotConfirmable: one of them is not stored.
        StorageError: the database does not answer.
    """
    found: list[Trajectory] = []
    seen, last = {recorded.trace_id}, recorded
    while last.resumes and last.resumes not in seen:
        seen.add(last.resumes)
        summary = run_summary(store, last.resumes, project=run.project)
        if summary is None:
            raise NotConfirmable(
                f"run {last.trace_id} continues the interrupted run {last.resumes}, which is not stored; "
                "no replay could be identical without it"
            )
        last = read_alone(store, summary)
        found.insert(0, last)
    return tuple(found)
