"""Scores profiles, and profiles joined with recorded answers, on held-out runs.

For each partition of the runs into folds, a fold's runs get their probabilities from a profile that
was trained on the others, and what joins them with a model's answers is calibrated on the others.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mast_trace_judge.layer_fusion import pool
from mast_trace_judge.local.attribution.calibration import fit_calibration
from mast_trace_judge.local.attribution.profile import run_hash, shipped_profiles
from mast_trace_judge.study.bench.methods import Opinion, contradicts_itself, fuse, predict, said
from mast_trace_judge.study.bench.scoring import score
from mast_trace_judge.study.training import cross_fit, to_example

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from mast_trace_judge.local.attribution.profile import Profile
    from mast_trace_judge.study.bench.scoring import Prediction, Score
    from mast_trace_judge.study.datasets.labelled import LabelledRun

    Predictions = Sequence[Sequence[Prediction]]

Answers = Mapping[tuple[str, str], Opinion | None]
"""A model's answers, by subset and name of the run."""
Distribution = dict[int, float]
Joins = Callable[["LabelledRun", Distribution], Distribution]
"""Changes a run's distribution by models' answers."""
_FLIP = 0.8
"""Weight of a counterfactual that stands for a recorded answer, which names a step outright."""


def places_seen(runs: Sequence[LabelledRun], own: Sequence[Profile] = ()) -> frozenset[int]:
    """Return the places of the runs that a shipped profile, or one of one's own, was trained on.

    A run is known by its task and its texts (`run_hash`), wherever it is read from.
    """
    seen = {each for profile in (*shipped_profiles(), *own) for each in profile.runs}
    return frozenset(i for i, run in enumerate(runs) if run_hash(run.trajectory) in seen)


def scores_by_sample(
    method: str,
    runs: Sequence[LabelledRun],
    predictions: Predictions,
    seen: Collection[int],
    *,
    of: Callable[[Sequence[LabelledRun]], str] = lambda _: "",
) -> Iterator[Score]:
    """Score a method that uses profiles: once on the runs that they have seen, once on the others.

    Args:
        method: its name.
        runs: of one set.
        predictions: for each of them.
        seen: places of the runs that are in sample.
        of: names the profiles that speak for some of the runs.
    """
    for sample in ("in sample", "out of sample"):
        places = [i for i in range(len(runs)) if (i in seen) == (sample == "in sample")]
        if places:
            part = [runs[i] for i in places]
            by = f" ({named})" if (named := of(part)) else ""
            share = f"all {len(runs)}" if len(part) == len(runs) else f"{len(part)} of {len(runs)}"
            yield score(
                f"{method}, {sample}{by}: {share} runs",
                part[0].subset,
                part,
                [predictions[i] for i in places],
                in_sample=len(part) if sample == "in sample" else 0,
            )


@dataclass(frozen=True)
class HeldOut:
    """A fold: distributions of its runs, and of the runs from which it was learned, by place."""

    own: Mapping[int, Distribution]
    others: Mapping[int, Distribution]


def held_out(runs: Sequence[LabelledRun], repeats: int) -> list[HeldOut]:
    """Return the folds of all partitions; together they hold each run once in each partition."""
    examples = {place: e for place, run in enumerate(runs) if (e := to_example(run)) is not None}
    places, usable = list(examples), list(examples.values())

    def by_step(found: Mapping[int, Sequence[float]]) -> dict[int, Distribution]:
        return {
            places[i]: dict(zip(usable[i].steps, values, strict=True))
            for i, values in found.items()
        }

    return [
        HeldOut(by_step(fold.own), by_step(fold.others))
        for repeat in range(repeats)
        for fold in cross_fit(usable, repeat)
    ]


def trained(runs: Sequence[LabelledRun], folds: Sequence[HeldOut]) -> list[list[Prediction]]:
    """Predict by cross-validated profiles."""
    return _predicted(runs, ((place, p) for fold in folds for place, p in fold.own.items()))


def gated(
    runs: Sequence[LabelledRun], answers: Answers, folds: Sequence[HeldOut]
) -> list[list[Prediction]]:
    """Predict a model's answer unless it contradicts itself, else the local judge's."""
    result = []
    for run, local in zip(runs, trained(runs, folds), strict=True):
        opinion = answers.get((run.subset, run.name))
        sound = opinion is not None and not contradicts_itself(run.trajectory, opinion)
        result.append([said(opinion)] if sound else local)
    return result


def fused(
    runs: Sequence[LabelledRun], joins: Joins, folds: Sequence[HeldOut]
) -> list[list[Prediction]]:
    """Predict by cross-validated profiles joined with answers, calibrated without the run."""
    found = []
    for fold in folds:
        calibration = fit_calibration(_samples(runs, joins, fold.others))
        found += [
            (place, calibration.apply(joins(runs[place], local)))
            for place, local in fold.own.items()
        ]
    return _predicted(runs, found)


def fusions(
    runs: Sequence[LabelledRun], joins: Joins, folds: Sequence[HeldOut]
) -> list[tuple[Distribution, int | None]]:
    """Return each run's joined distributions, not calibrated, with its decisive step."""
    return [sample for fold in folds for sample in _samples(runs, joins, fold.own)]


def by_opinion(*answers: Answers) -> Joins:
    """Join as `opinions` does, where a model names step and agent outright."""
    return lambda run, local: fuse(run.trajectory, local, _opinions(run, answers))


def by_counterfactual(*answers: Answers) -> Joins:
    """Join as verdicts do, with a counterfactual for each step that a sound answer names."""

    def join(run: LabelledRun, local: Distribution) -> Distribution:
        named = {
            opinion.step: _FLIP
            for opinion in _opinions(run, answers)
            if opinion.step is not None and not contradicts_itself(run.trajectory, opinion)
        }
        return pool(local, named)

    return join


def _opinions(run: LabelledRun, answers: Sequence[Answers]) -> list[Opinion]:
    key = (run.subset, run.name)
    return [opinion for each in answers if (opinion := each.get(key)) is not None]


def _samples(
    runs: Sequence[LabelledRun], joins: Joins, found: Mapping[int, Distribution]
) -> list[tuple[Distribution, int | None]]:
    return [(joins(runs[place], local), runs[place].step) for place, local in found.items()]


def _predicted(
    runs: Sequence[LabelledRun], found: Iterable[tuple[int, Distribution]]
) -> list[list[Prediction]]:
    result: dict[int, list[Prediction]] = defaultdict(list)
    for place, probabilities in found:
        result[place].append(predict(runs[place], probabilities, {}, name="held out"))
    return [result[place] for place in range(len(runs))]
