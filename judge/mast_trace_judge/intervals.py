"""Confidence intervals of a success rate, and when evidence has been right often enough to assert a step."""

from __future__ import annotations

import math

FEWEST_CASES = 20
"""Natural failures on which a kind of evidence must have been counted before it asserts a step."""
ASSERTED_FROM = 0.6
"""The least lower end of the 95 % interval of being right on these: fewer than four in ten assertions are wrong."""


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


def asserts(right: int, cases: int) -> bool:
    """Return whether evidence asserts a step that was right in some of so many natural failures."""
    return cases >= FEWEST_CASES and wilson(right, cases)[0] >= ASSERTED_FROM


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
