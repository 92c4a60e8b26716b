"""Checks whether a total can be a sum of given figures, with any of them multiplied by a quantity."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

_MOST_SUMS = 50_000
"""Number of sums beyond which nearly every figure equals one of them."""


def reachable(value: float, parts: Sequence[float], factors: Collection[float]) -> bool:
    """Return whether a value may be a sum of some of the parts.

    Args:
        value: the stated total.
        parts: figures, each of which may be left out, added or subtracted, once or times a factor.
        factors: quantities that the run names, such as nights or people.
    """
    multiples = {0.0, 1.0, -1.0, *factors}
    sums = {0.0}
    for part in parts:
        sums = {round(total + part * times, 4) for total in sums for times in multiples}
        if len(sums) > _MOST_SUMS:
            return True
    # The total as a whole may have been multiplied or divided by a factor.
    wanted = {value} | {w for f in factors if f for w in (value / f, value * f)}
    slack = 0.5 if value == int(value) else 0.006
    return any(abs(abs(total) - abs(w)) <= slack for total in sums for w in wanted)
