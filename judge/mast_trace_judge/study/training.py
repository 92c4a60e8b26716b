"""Fits a profile to labelled runs, and scores it on held-out runs."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING

from mast_trace.exceptions import ConfigurationError
from mast_trace_judge.local.attribution.features import FEATURES, features
from mast_trace_judge.local.attribution.likeness import likeness_of, run_hash
from mast_trace_judge.local.attribution.profile import Profile
from mast_trace_judge.study.datasets.who_and_when import same_agent
from mast_trace_judge.study.feature_selection import Fold, folds, probabilities, train
from mast_trace_judge.study.logit import Example
from mast_trace_judge.study.numeric import numpy_module

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mast_trace_judge.study.datasets.labelled import LabelledRun

FEWEST_LABELS = 10
"""Number of labelled runs below which a profile would be noise."""
_OUTER_FOLDS = 5
REPEATS = 10
"""Partitions into outer folds over which cross-validated scores are averaged."""


def fit(
    labelled: Sequence[LabelledRun],
    *,
    name: str,
    frameworks: tuple[str, ...] = (),
    trained_on: str = "",
    seed: int = 0,
    repeats: int = REPEATS,
) -> Profile:
    """Fit a profile to the runs that have a label.

    The profile carries the number of labels and its cross-validated scores, for which all
    parameters, ridge and temperature included, were chosen without the scored runs.

    Args:
        labelled: the runs.
        name: of the profile.
        frameworks: see `Profile`.
        trained_on: likewise.
        seed: of the partitions into folds.
        repeats: partitions over which the cross-validated scores are averaged.

    Raises:
        ConfigurationError: fewer than `FEWEST_LABELS` runs have a label, or numpy is missing.
    """
    taught = [(run, example) for run in labelled if (example := to_example(run)) is not None]
    examples = [example for _, example in taught]
    if len(examples) < FEWEST_LABELS:
        raise ConfigurationError(
            f"{len(examples)} labelled runs are too few to fit a profile: {FEWEST_LABELS} at least"
        )
    examples, folded_by = in_groups(examples)
    weights, settings, _ = train(examples, seed)
    held_out = [cross_validate(examples, seed + repeat) for repeat in range(repeats)]
    return Profile(
        name=name,
        weights=dict(zip(FEATURES, weights, strict=True)),
        frameworks=frameworks,
        trained_on=trained_on,
        labels=len(examples),
        scores=_scores(examples, held_out),
        settings=settings,
        likeness=likeness_of([run.trajectory for run, _ in taught]),
        runs=tuple(sorted({run_hash(run.trajectory) for run, _ in taught})),
        folded_by=folded_by,
    )


def in_groups(examples: Sequence[Example]) -> tuple[list[Example], str]:
    """Return examples whose groups can be divided into folds, and the unit of a group.

    Where nearly all runs have one task, each run is a group of its own: the scores then hold for
    more runs of these tasks, not for others.
    """
    if len({example.group for example in examples}) >= _OUTER_FOLDS:
        return list(examples), "task"
    return [replace(example, group=str(place)) for place, example in enumerate(examples)], "run"


def to_example(run: LabelledRun) -> Example | None:
    """Return a run as numbers; None where it has no label or nobody acts."""
    actors, rows = features(run.trajectory)
    if not actors or (run.step is None and not run.agent):
        return None
    names = tuple(run.trajectory.steps[index].agent for index in actors)
    agent = run.agent or (run.trajectory.steps[run.step].agent if run.step is not None else "")
    return Example(
        rows=numpy_module().array(rows),
        steps=tuple(actors),
        agents=names,
        gold=actors.index(run.step) if run.step in actors else None,
        blamed=tuple(i for i, other in enumerate(names) if same_agent(other, agent)),
        group=run.group or run.trajectory.trace_id,
    )


def cross_fit(examples: Sequence[Example], seed: int) -> list[Fold]:
    """Divide the runs into folds, and predict each fold by a profile that has not seen it.

    Parameters that are learned from probabilities, such as a calibration, have to be learned from
    each fold's predictions of the other runs, and then applied to the fold's own.
    """
    np = numpy_module()
    found = []
    for fold in folds(examples, _OUTER_FOLDS, seed + 1000):
        others = [i for i in range(len(examples)) if i not in fold]
        weights, _, inner = train([examples[i] for i in others], seed)
        own = {i: probabilities(examples[i].rows @ np.array(weights)) for i in sorted(fold)}
        found.append(Fold(own, dict(zip(others, inner, strict=True))))
    return found


def cross_validate(examples: Sequence[Example], seed: int) -> list[list[float]]:
    """Return each run's probabilities from a profile that saw no run of its group."""
    result: list[list[float]] = [[] for _ in examples]
    for fold in cross_fit(examples, seed):
        for place, found in fold.own.items():
            result[place] = found
    return result


def _scores(
    examples: Sequence[Example], held_out: Sequence[Sequence[Sequence[float]]]
) -> dict[str, float]:
    """Return the share of runs whose agent, step, and step among the first three are right."""
    hits: dict[str, int] = defaultdict(int)
    for repeat in held_out:
        for example, found in zip(examples, repeat, strict=True):
            ranked = sorted(range(len(found)), key=lambda i: -found[i])
            hits["agent"] += ranked[0] in example.blamed
            hits["step"] += ranked[0] == example.gold
            hits["top 3"] += example.gold in ranked[:3]
    scored = len(examples) * len(held_out)
    return {measure: round(count / scored, 3) for measure, count in hits.items()}
