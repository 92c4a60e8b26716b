"""Numbers of runs that a comparison of two shares needs.

Source: J. T. Casagrande, M. C. Pike, P. G. Smith, "An improved approximate formula for calculating sample
sizes for comparing two binomial distributions", Biometrics 34 (1978), for unequal sizes in the form of J. L.
Fleiss, A. Tytun, H. K. Ury, Biometrics 36 (1980). It approximates Fisher's exact test.
"""

from __future__ import annotations

from math import ceil, sqrt
from statistics import NormalDist
from typing import Final

POWER: Final = 0.8
"""Probability with which a difference shall be noticed."""
MOST: Final = 1_000_000


def runs_needed(old: float, new: float, level: float, *, ratio: float = 1.0) -> int | None:
    """Return about how many new runs show a rise from one share to another.

    Args:
        old: share of the baseline.
        new: share of the new runs; above ``old``.
        level: probability of a false alarm, one-sided.
        ratio: runs of the baseline for each new run.

    Returns:
        The number of new runs; None where it is above `MOST` or the shares do not rise.
    """
    rise = new - old
    if rise <= 0 or ratio <= 0:
        return None
    normal = NormalDist()
    mean = (new + ratio * old) / (ratio + 1)
    spread = normal.inv_cdf(1 - level) * sqrt((ratio + 1) * mean * (1 - mean)) + normal.inv_cdf(
        POWER
    ) * sqrt(ratio * new * (1 - new) + old * (1 - old))
    plain = spread**2 / (ratio * rise**2)
    exact = (
        plain / 4 * (1 + sqrt(1 + 2 * (ratio + 1) / (plain * ratio * rise))) ** 2 if plain else 1
    )
    return ceil(exact) if exact <= MOST else None


def new_runs_needed(old: float, new: float, level: float, baseline: int) -> int | None:
    """Return about how many new runs show such a rise beside a baseline of so many runs.

    None where no number of new runs is enough, or more than `MOST`.
    """
    low, high = 1, MOST
    if not baseline or not _is_enough(old, new, level, baseline, high):
        return None
    while low < high:
        middle = (low + high) // 2
        if _is_enough(old, new, level, baseline, middle):
            high = middle
        else:
            low = middle + 1
    return low


def noticed_from(old: float, level: float, baseline: int, runs: int) -> float | None:
    """Return about the smallest share of new runs that would be noticed; None if not even 1 would be.

    Args:
        old: share of the baseline.
        level: probability of a false alarm.
        baseline: runs of the baseline.
        runs: new runs.
    """
    if not runs or not baseline or not _is_enough(old, 1.0, level, baseline, runs):
        return None
    low, high = old, 1.0
    for _ in range(40):
        middle = (low + high) / 2
        if _is_enough(old, middle, level, baseline, runs):
            high = middle
        else:
            low = middle
    return high


def _is_enough(old: float, new: float, level: float, baseline: int, runs: int) -> bool:
    needed = runs_needed(old, new, level, ratio=baseline / runs)
    return needed is not None and needed <= runs
