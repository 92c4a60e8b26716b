"""Reliability of a method's probabilities: their distance from the share of right predictions."""

from __future__ import annotations

import random
from collections import defaultdict
from statistics import fmean
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_BINS = 10
_DRAWS = 100


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
