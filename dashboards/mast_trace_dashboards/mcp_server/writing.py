"""The MCP server's writing functions: a label and an outcome of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mast_trace_collector.storage.project_store import ProjectStore
from mast_trace_collector.storage.runs import record_outcome
from mast_trace_dashboards.run_names import NotFound
from mast_trace_judge.store.labels import HumanLabel, save_labels

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Literal

    from mast_trace_collector.storage import Store
    from mast_trace_dashboards.found_run import FoundRun


def label_run(
    store: Store,
    found: FoundRun,
    annotator: str,
    *,
    outcome: str,
    modes: Sequence[str],
    step: int | None,
    note: str,
) -> Any:
    """Record an opinion of a run; a later one of the same annotator replaces it.

    Raises:
        ConfigurationError: the opinion is empty, or names an unknown failure mode or outcome.
        NotFound: the run has no such step.
    """
    count = found.stored.count
    if step is not None and not 0 <= step < count:
        raise NotFound(f"the run has no step {step}: its steps are 0 to {count - 1}")
    agent = "" if step is None else found.stored.outline.actor(step)
    run, project = found.stored.trace_id, found.stored.project
    chosen = tuple(sorted(set(modes)))
    label = HumanLabel(run, annotator, outcome, chosen, step, agent, note, project=project)
    save_labels(store, [label])
    return {"recorded": "label", "run": run, "annotator": annotator}


def set_outcome(
    store: Store, found: FoundRun, outcome: Literal["success", "failure"], reason: str
) -> Any:
    """Record a run's outcome; the run is judged again.

    Raises:
        StorageError: the database does not accept it.
    """
    # A project's store refuses all statements but inserts of rows; the run was found in it.
    whole = store.whole if isinstance(store, ProjectStore) else store
    record_outcome(whole, found.stored.trace_id, outcome, reason, project=found.stored.project)
    return {"recorded": "outcome", "run": found.stored.trace_id, "outcome": outcome}
