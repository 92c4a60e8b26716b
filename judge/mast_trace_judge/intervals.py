"""Confidence intervals of a success rate."""

from __future__ import annotations

import math


def wilson(successes: float, runs: float, z: float = 1.959964) -> tuple[float, float]:
    """Return Wilson's score interval of a rate, by default with 95 %.

    Wilson (1927), as in Brown, Cai and DasGupta (2001). Without runs it is (0, 1).

    Args:
        successes: among the runs; a part of one where ``runs`` is an effective number.
        runs: their number.
        z: quantile of the normal distribution, or of Student's t.
    """
    if not runs:
        return 0.0, 1.0
    rate = successes / runs
    scale = 1 + z * z / runs
    middle = (rate + z * z / (2 * runs)) / scale
    half = z * math.sqrt(rate * (1 - rate) / runs + z * z / (4 * runs * runs)) / scale
    return max(0.0, middle - half), min(1.0, middle + half)


def newcombe(one: tuple[int, int], other: tuple[int, int]) -> tuple[float, float]:
    """Return the 95 % interval of the difference of two shares, one minus other (Newcombe 1998, method 10).

    Args:
        one: successes and runs, at least one run.
        other: likewise.
    """
    share, against = one[0] / one[1], other[0] / other[1]
    low, high = wilson(*one)
    low_against, high_against = wilson(*other)
    difference = share - against
    return (
        difference - math.hypot(share - low, high_against - against),
        difference + math.hypot(high - share, against - low_against),
    )
