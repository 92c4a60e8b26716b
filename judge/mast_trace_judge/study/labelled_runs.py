"""Runs of a store that people have labelled, as cases to learn from."""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import islice
from typing import TYPE_CHECKING

from mast_trace_collector.storage.runs import run_summary
from mast_trace_judge.store.labels import NO_MODES, HumanLabel, labels_of
from mast_trace_judge.store.runs import read_alone
from mast_trace_judge.study.datasets.labelled import LabelledRun

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mast_trace_collector.storage import Store

NamedSteps = dict[tuple[str, str], tuple[int, str]]
"""Decisive step and agent by project and trace id."""


def named_steps(labels: Sequence[HumanLabel]) -> NamedSteps:
    """Return the decisive steps that people named; where they differ, what most say counts."""
    by_run: dict[tuple[str, str], Counter[tuple[int, str]]] = defaultdict(Counter)
    for label in labels:
        if label.decisive_step is not None:
            named = (label.decisive_step, label.decisive_agent)
            by_run[label.project, label.trace_id][named] += 1
    return {run: said.most_common(1)[0][0] for run, said in by_run.items()}


def named_modes(labels: Sequence[HumanLabel]) -> dict[tuple[str, str], dict[str, bool]]:
    """Return the failure modes of each run that at least half of those who named any saw in it."""
    by_run: dict[tuple[str, str], list[HumanLabel]] = defaultdict(list)
    for label in labels:
        if label.modes:
            by_run[label.project, label.trace_id].append(label)
    found = {}
    for run, said in by_run.items():
        counts = Counter(code for label in said for code in label.modes if label.modes != NO_MODES)
        found[run] = {code: True for code, count in counts.items() if 2 * count >= len(said)}
    return found


def labelled_runs(
    store: Store,
    named: Mapping[tuple[str, str], tuple[int, str]] | None = None,
    *,
    most: int | None = None,
) -> list[LabelledRun]:
    """Read the runs whose decisive step people named; those without spans are left out.

    Args:
        store: where they are.
        named: their decisive steps; those of all labels if not given.
        most: read no more runs than these, the first by their ids, which are drawn by chance.

    Raises:
        StorageError: the database does not answer.
    """
    labels = labels_of(store) if named is None else []
    named = named_steps(labels) if named is None else named
    modes = named_modes(labels)
    by_id = sorted(named.items(), key=lambda item: item[0][::-1])
    found = (_read(store, *run, *said, modes.get(run, {})) for run, said in by_id)
    return list(islice((run for run in found if run is not None), most))


def _read(
    store: Store, project: str, trace_id: str, step: int, agent: str, modes: Mapping[str, bool]
) -> LabelledRun | None:
    summary = run_summary(store, trace_id, project=project)
    if summary is None or not summary.spans:
        return None
    trajectory = read_alone(store, summary)
    # Runs of one question share a group, so that no fold is scored on what it has learned.
    group = trajectory.task or trace_id
    return LabelledRun("store", trace_id, trajectory, group, step, agent, modes=modes)
