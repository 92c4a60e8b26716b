"""The look-up of one run: what pages and commands know of it before they read its steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mast_trace_dashboards.queries import QUERIES
from mast_trace_dashboards.stored_run import StoredRun
from mast_trace_judge.store.verdicts import load_latest

if TYPE_CHECKING:
    from mast_trace_collector.storage import Store
    from mast_trace_judge.verdict import Verdict


@dataclass(frozen=True)
class FoundRun:
    """A run that was looked up, of which no step is read yet.

    Attributes:
        row: of the query `run`.
        stored: its steps and spans.
        verdict: the newest one; None if there is none.
    """

    row: dict[str, Any]
    stored: StoredRun
    verdict: Verdict | None


def find_run(store: Store, trace_id: str, project: str | None = None) -> FoundRun | None:
    """Look a run up; None if there is none.

    Args:
        store: where it may be.
        trace_id: of the run.
        project: whose it is; if absent, of several projects' runs under one id the first by name.

    Raises:
        StorageError: the database does not answer.
    """
    rows = QUERIES["run"].run(store, run=trace_id)
    ours = (row for row in rows if project is None or row["Project"] == project)
    row = min(ours, key=lambda each: str(each["Project"]), default=None)
    if row is None:
        return None
    stored = StoredRun(store, trace_id, row["Project"], size=row["Spans"])
    return FoundRun(row, stored, load_latest(store, trace_id, project=row["Project"]))
