"""Calibration of a fitted profile, and the probability below which it abstains, from held-out runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from mast_trace_judge.local.attribution import ASSERTED_FROM, FEWEST_CASES, NEVER
from mast_trace_judge.local.attribution.calibration import Calibration, fit_calibration
from mast_trace_judge.study.agreement import wilson
from mast_trace_lab.fit.labels import INJECTION
from mast_trace_lab.fit.models import concluded
from mast_trace_lab.fit.schemes import PARTS, parts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mast_trace_lab.fit.labels import Label
    from mast_trace_lab.fit.models import Mass

_STEPS: Final = tuple(0.5 + 0.05 * i for i in range(10))
"""Probabilities that may be the threshold: below a half another step is as likely."""


@dataclass(frozen=True)
class Threshold:
    """A calibration with the probability from which the likeliest step is named."""

    calibration: Calibration
    least: float


def fit_threshold(labels: Sequence[Label], masses: Mapping[int, Mass]) -> Threshold:
    """Calibrate on held-out probabilities, and choose the threshold.

    It is the lowest probability from which the likeliest step was right in at least `ASSERTED_FROM` of the natural
    failures, by the lower end of Wilson's interval (95 %), and at least `FEWEST_CASES` of them; `NEVER` if there is none.

    Args:
        labels: the labelled runs.
        masses: held-out probabilities, by place.
    """
    calibration = fit_calibration([(mass, labels[i].run.step) for i, mass in masses.items()])
    first = []
    for place, mass in masses.items():
        candidates = concluded(labels[place], mass, calibration).candidates
        if candidates and labels[place].source != INJECTION:
            right = candidates[0].step == labels[place].run.step
            first.append((candidates[0].probability, right))
    for least in _STEPS:
        named = [right for probability, right in first if probability >= least]
        enough = len(named) >= FEWEST_CASES
        if enough and wilson(sum(named), len(named)).low >= ASSERTED_FROM:
            return Threshold(calibration, round(least, 2))
    return Threshold(calibration, NEVER)


def cross_fitted(
    labels: Sequence[Label], masses: Mapping[int, Mass], units: Sequence[str], seed: int
) -> dict[int, Threshold]:
    """Return for each held-out run a threshold that was fitted without the runs of its unit."""
    places = sorted(masses)
    found: dict[int, Threshold] = {}
    for part in parts([units[place] for place in places], PARTS, seed):
        own = {places[i] for i in part}
        others = {place: mass for place, mass in masses.items() if place not in own}
        found.update(dict.fromkeys(own, fit_threshold(labels, others)))
    return found
