"""Confidence intervals of a success rate."""

from __future__ import annotations

import math


def wilson(successes: int, runs: int, z: float = 1.959964) -> tuple[float, float]:
    """Return Wilson's score interval of a rate, by default with 95 %.

    Wilson (1927), as in Brown, Cai and DasGupta (2001). Without runs it is (0, 1).
    """
    if not runs:
        return 0.0, 1.0
    rate = successes / runs
    scale = 1 + z * z / runs
    middle = (rate + z * z / (2 * runs)) / scale
    half = z * math.sqrt(rate * (1 - rate) / runs + z * z / (4 * runs * runs)) / scale
    return max(0.0, middle - half), min(1.0, middle + half)
