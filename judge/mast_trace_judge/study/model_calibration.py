"""Step accuracy of language models, measured on the labelled runs of a store.

A model's statement of its own certainty is no probability, and an accuracy measured for one model does
not hold for another. So the percentages of a verdict in which a model took part are shares of labelled
runs of the same project and framework that the same model has read; with too few of them none are given.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

from mast_trace_collector.storage.runs import run_summary
from mast_trace_judge.store.labels import NO_MODES, labels_of
from mast_trace_judge.store.runs import read_alone
from mast_trace_judge.study.agreement import Interval, wilson
from mast_trace_judge.study.datasets.labelled import LabelledRun

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from mast_trace_collector.storage import Store
    from mast_trace_judge.store.labels import HumanLabel
    from mast_trace_judge.verdict import Verdict

NamedSteps = dict[tuple[str, str], tuple[int, str]]
"""Decisive step and agent by project and trace id."""

FEWEST_RUNS = 10
"""Smallest number of labelled runs for which a share is given; with fewer its interval is too wide."""
_PLACES = 3
_READ = """
SELECT Project, TraceId, Framework, Model, DecisiveStep, `Candidates.Step` AS Steps
FROM mast_verdicts FINAL
WHERE (Project, TraceId) IN (
    SELECT Project, TraceId FROM mast_human_labels WHERE isNotNull(DecisiveStep))
  AND Status = 'ok' AND Model != ''
ORDER BY JudgedAt DESC
LIMIT 1 BY Project, TraceId, Model"""


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


@dataclass(frozen=True)
class RankShares:
    """Numbers of labelled runs in which the first, second and third candidate is the labelled step.

    Attributes:
        runs: number of labelled runs.
        right: number of runs in which the candidate is right, by its place.
    """

    runs: int
    right: tuple[int, ...]

    @property
    def is_enough(self) -> bool:
        """True if the shares are given."""
        return self.runs >= FEWEST_RUNS

    def share(self, place: int) -> float:
        """Return the share of a candidate's place, from 0 on."""
        return self.right[place] / self.runs if self.runs else 0.0

    def interval(self, place: int) -> Interval:
        """Return Wilson's interval of that share (95 %)."""
        return wilson(self.right[place], self.runs)


@dataclass(frozen=True)
class ModelCalibration:
    """A model's step accuracy on the labelled runs of a project and a framework.

    Attributes:
        project: name of the project.
        framework: name of the framework.
        model: name of the model, or all names of a panel, as verdicts have them.
        named: shares in runs whose verdict calls a step decisive, which is its first candidate.
        unsure: shares in runs whose verdict calls no step decisive.
    """

    project: str
    framework: str
    model: str
    named: RankShares
    unsure: RankShares

    def of(self, verdict: Verdict) -> RankShares:
        """Return the shares of verdicts of the same kind: those that name a decisive step, or the others."""
        return self.unsure if verdict.decisive is None else self.named


def model_calibrations(store: Store, labels: Sequence[HumanLabel]) -> list[ModelCalibration]:
    """Return the calibration of every model that has read labelled runs.

    If a model has read a run more than once, its newest verdict counts.

    Args:
        store: the store of the verdicts.
        labels: people's labels; if they differ on a run, the most frequent step counts.

    Raises:
        StorageError: the database does not answer.
    """
    return _counted(store.query(_READ), named_steps(labels))


def calibration_of(store: Store, verdict: Verdict | None) -> ModelCalibration | None:
    """Return the calibration of a verdict's model; None without a model, or without labelled runs.

    Raises:
        StorageError: the database does not answer.
    """
    if verdict is None or not verdict.model:
        return None
    wanted = (verdict.project, verdict.framework, verdict.model)
    found = model_calibrations(store, labels_of(store))
    return next((c for c in found if (c.project, c.framework, c.model) == wanted), None)


def _counted(
    rows: Iterable[Mapping[str, Any]], labelled: Mapping[tuple[str, str], tuple[int, str]]
) -> list[ModelCalibration]:
    hits: dict[tuple[str, str, str], dict[bool, list[int | None]]]
    hits = defaultdict(lambda: {True: [], False: []})
    for row in rows:
        said = labelled.get((row["Project"], row["TraceId"]))
        if said is None:
            continue
        steps = list(row["Steps"][:_PLACES])
        place = steps.index(said[0]) if said[0] in steps else None
        key = (row["Project"], row["Framework"], row["Model"])
        hits[key][row["DecisiveStep"] is not None].append(place)
    return [
        ModelCalibration(*key, named=_shares(places[True]), unsure=_shares(places[False]))
        for key, places in sorted(hits.items())
    ]


def _shares(places: Sequence[int | None]) -> RankShares:
    return RankShares(len(places), tuple(places.count(place) for place in range(_PLACES)))
