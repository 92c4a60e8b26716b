"""Calibration of a distribution over steps: the frequencies of the first, second, third step.

A distribution overestimates its first step where its reasons repeat each other. It is mixed with
the usual distribution of such runs: the k-th step is the decisive one with a probability that falls
by a constant factor from step to step. The order of the steps stays as it is. Two numbers are few
enough to be fitted to some dozen labelled runs, by their likelihood.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

STORED = "calibrations.json"
"""The file beside this module with the calibrations that ship; part of the judge's version."""
_SHARES = tuple(0.05 * i for i in range(17))
_FIRSTS = tuple(0.05 * i for i in range(2, 13))
"""Below 0.1 the usual distribution is flat: it suits long runs' tails, but no first step."""
_LEAST = 1e-6


@dataclass(frozen=True)
class Calibration:
    """Mixes a distribution with the usual one; by default it changes nothing.

    Attributes:
        share: weight of the usual distribution, from 0 to 1.
        first: its probability of the first step in a long run; each further step has ``1 - first``
            times that of the step before it.
    """

    share: float = 0.0
    first: float = 0.5

    def apply(self, probabilities: Mapping[int, float]) -> dict[int, float]:
        """Return the calibrated probabilities by step; equal steps count from the first on."""
        count = len(probabilities)
        return {
            step: self.mix(probabilities[step], rank, count)
            for rank, step in enumerate(ranked(probabilities))
        }

    def mix(self, probability: float, rank: int, count: int) -> float:
        """Calibrate the probability of the step of a rank, counted from 0, among so many steps."""
        fall = 1.0 - self.first
        usual = self.first * fall**rank / (1.0 - fall**count)
        return (1.0 - self.share) * probability + self.share * usual


def ranked(probabilities: Mapping[int, float]) -> list[int]:
    """Return the steps, likeliest first; equal ones as they are given."""
    return sorted(probabilities, key=lambda step: -probabilities[step])


def fit_calibration(samples: Iterable[tuple[Mapping[int, float], int | None]]) -> Calibration:
    """Return the calibration under which the labelled steps are likeliest.

    Args:
        samples: distributions that were made without knowing their run, and the decisive step of
            each run. A run without one, or whose step has no probability, is ignored.
    """
    placed = [
        (probabilities[step], ranked(probabilities).index(step), len(probabilities))
        for probabilities, step in samples
        if step is not None and step in probabilities
    ]
    tried = [Calibration(share, first) for share in _SHARES for first in _FIRSTS]
    return (
        min(
            tried,
            key=lambda each: -sum(math.log(max(each.mix(*place), _LEAST)) for place in placed),
        )
        if placed
        else Calibration()
    )


def cascade_calibration() -> Calibration:
    """Return the calibration of the untrained cascade."""
    return _stored()["cascade"]


@cache
def _stored() -> dict[str, Calibration]:
    text = (files(__package__) / STORED).read_text(encoding="utf-8")
    return {
        name: Calibration(float(values["share"]), float(values["first"]))
        for name, values in json.loads(text).items()
    }
