"""Scores predictions of the decisive step against labels: strictly, and as the paper's script does."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import NamedTuple

from mast_trace_judge.study.agreement import Interval, wilson
from mast_trace_judge.study.labelled import LabelledRun, same_agent

_BINS = 10
_DRAWS = 100

MEASURES = (
    "agent",
    "step",
    "within 1",
    "within 3",
    "top 3",
    "marked in 1",
    "marked in 3",
    "official agent",
    "official step",
)
"""Shares of runs. ``marked`` means a step that the second label team calls a failure of any kind."""


class Confidence(NamedTuple):
    """The probability of a prediction's first step, and whether that step was right.

    Attributes:
        run: the run's index; predictions of one run are right or wrong together.
        probability: of the prediction's first step.
        right: whether that is the labelled one.
        weight: of the prediction.
    """

    run: int
    probability: float
    right: bool
    weight: float


def reliability(given: Iterable[Confidence]) -> tuple[tuple[float, float, float], ...]:
    """Return for each bin with predictions: mean probability, share of right ones, weight."""
    bins: dict[int, list[Confidence]] = defaultdict(list)
    for each in given:
        bins[min(_BINS - 1, int(each.probability * _BINS))].append(each)
    result = []
    for _, members in sorted(bins.items()):
        total = sum(each.weight for each in members)
        mean = sum(each.probability * each.weight for each in members) / total
        right = sum(each.weight for each in members if each.right) / total
        result.append((mean, right, total))
    return tuple(result)


def calibration_error(bins: Sequence[tuple[float, float, float]]) -> float:
    """Return the expected calibration error: the bins' mean distance, by weight."""
    total = sum(weight for _, _, weight in bins)
    return sum(abs(mean - right) * weight for mean, right, weight in bins) / total


def error_by_chance(given: Sequence[Confidence]) -> float:
    """Return the mean error that these probabilities would show if they were exactly right.

    Each run's first steps are drawn right or wrong by their own probabilities, all of a run by one
    draw. With a few dozen runs in ten bins this is far from 0.
    """
    drawing = random.Random(0)  # noqa: S311  # the same on every machine, and no secret
    errors = []
    for _ in range(_DRAWS):
        drawn: dict[int, float] = defaultdict(drawing.random)
        told = [each._replace(right=drawn[each.run] < each.probability) for each in given]
        errors.append(calibration_error(reliability(told)))
    return fmean(errors)


@dataclass(frozen=True)
class Prediction:
    """A method's prediction for a run.

    Attributes:
        steps: likeliest first; empty where the method gives no verdict, which counts as a miss.
        agent: the blamed agent.
        probability: of the first step; None where the method gives none.
        weight: of the prediction, for methods that draw one of several by chance.
        top_3: the chance that the label is among three, where ``steps`` does not determine it.
    """

    steps: tuple[int, ...]
    agent: str
    probability: float | None = None
    weight: float = 1.0
    top_3: float | None = None


@dataclass(frozen=True)
class Share:
    """A share of runs with Wilson's interval at 95 %."""

    value: float
    interval: Interval


@dataclass(frozen=True)
class Score:
    """The scores of a method on a subset.

    Attributes:
        method: its name.
        subset: the runs' name.
        runs: the number of runs.
        in_sample: the number of those that the method's profiles were trained on.
        shares: by measure; a measure that needs labels which the subset lacks is missing.
        calibration_error: expected calibration error of the first step's probability, ten bins.
        error_by_chance: the same, on average, if the probabilities were exactly right.
        reliability: per bin with predictions: mean probability, share that was right, count.
        step_errors: number of predictions by the distance of the first step from the label, in
            steps.
    """

    method: str
    subset: str
    runs: int
    shares: Mapping[str, Share]
    calibration_error: float | None
    error_by_chance: float | None = None
    reliability: tuple[tuple[float, float, float], ...] = ()
    step_errors: Mapping[int, float] = field(default_factory=dict)
    in_sample: int = 0


def score(
    method: str,
    subset: str,
    labelled: Sequence[LabelledRun],
    predictions: Sequence[Sequence[Prediction]],
    *,
    in_sample: int = 0,
) -> Score:
    """Score a method that gave each run one or several predictions, which share the run's weight."""
    sums: dict[str, float] = defaultdict(float)
    errors: dict[int, float] = defaultdict(float)
    confident: list[Confidence] = []
    for place, (run, given) in enumerate(zip(labelled, predictions, strict=True)):
        total = sum(prediction.weight for prediction in given) or 1.0
        for prediction in given:
            weight = prediction.weight / total
            for measure, value in _hits(run, prediction).items():
                sums[measure] += weight * value
            if prediction.steps and run.step is not None:
                errors[prediction.steps[0] - run.step] += weight
                if prediction.probability is not None:
                    hit = prediction.steps[0] == run.step
                    confident.append(Confidence(place, prediction.probability, hit, weight))
    count = len(labelled)
    bins = reliability(confident)
    return Score(
        method=method,
        subset=subset,
        runs=count,
        shares={
            measure: Share(sums[measure] / count, wilson(round(sums[measure]), count))
            for measure in MEASURES
            if measure in sums and count
        },
        calibration_error=calibration_error(bins) if bins else None,
        error_by_chance=error_by_chance(confident) if bins else None,
        reliability=bins,
        step_errors=dict(sorted(errors.items())),
        in_sample=in_sample,
    )


def _hits(run: LabelledRun, prediction: Prediction) -> dict[str, float]:
    first = prediction.steps[0] if prediction.steps else None
    hits: dict[str, float] = {}
    if run.agent:
        hits["agent"] = bool(prediction.agent) and same_agent(prediction.agent, run.agent)
        hits["official agent"] = bool(prediction.agent) and run.agent in prediction.agent
    if run.step is not None:
        distance = None if first is None else abs(first - run.step)
        hits["step"] = distance == 0
        hits["within 1"] = distance is not None and distance <= 1
        hits["within 3"] = distance is not None and distance <= 3
        hits["top 3"] = (
            run.step in prediction.steps[:3] if prediction.top_3 is None else prediction.top_3
        )
        # The published script looks for the gold step's digits anywhere in the answer's.
        hits["official step"] = first is not None and str(run.step) in str(first)
    if run.marked:
        hits["marked in 1"] = first in run.marked
        hits["marked in 3"] = any(step in run.marked for step in prediction.steps[:3])
    return hits
