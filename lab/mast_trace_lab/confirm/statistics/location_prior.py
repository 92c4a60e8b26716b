"""Prior of the location of an error: where success first fell, and from where it stays gone."""

from __future__ import annotations

import math
from itertools import accumulate
from typing import TYPE_CHECKING, Final

from mast_trace_lab.confirm.statistics.shapes import SINGLE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_ROUNDING: Final = 1e-14

UNIFORM: Final = 0.35
"""Share of the prior that does not follow the judge."""


def origin_weights(length: int, candidates: Mapping[int, float]) -> tuple[float, ...]:
    """Return the prior of the origin by position.

    Args:
        length: number of decisions.
        candidates: the judge's probabilities by position; those that are no positive numbers are left out.
    """
    given = [candidates.get(each, 0.0) for each in range(length)]
    weights = [each if 0 < each < math.inf else 0.0 for each in given]
    total = sum(weights)
    if not total:
        return tuple(1 / length for _ in range(length))
    return tuple((1 - UNIFORM) * each / total + UNIFORM / length for each in weights)


class LocationPrior:
    """Joint prior of origin and point of no return, summed over ranges of positions.

    The point of no return is the origin itself with weight `SINGLE`, and otherwise each later position
    alike.
    """

    def __init__(self, weights: Sequence[float]) -> None:
        """Make the prior from the weights of the origin."""
        self.length = len(weights)
        self.weights = tuple(weights)
        last = self.length - 1
        single = [each * SINGLE for each in weights[:-1]] + [*weights[-1:]]
        # The weight of each later point of no return, by origin.
        later = [(1 - SINGLE) * each / (last - origin) for origin, each in enumerate(weights[:-1])]
        later.append(0.0)
        self._single = [0.0, *accumulate(single)]
        self._later = [0.0, *accumulate(later)]
        self._moments = [0.0, *accumulate(origin * each for origin, each in enumerate(later))]

    def single(self, after: int, until: int) -> float:
        """Return the weight of an origin in (after, until] that is the point of no return too."""
        return self._single[until + 1] - self._single[after + 1]

    def repairable(self, origin: tuple[int, int], point: tuple[int, int]) -> float:
        """Return the weight of an origin and a later point, each in a range (after, until]."""
        (low, high), (left, right) = origin, point
        inside = max(low, min(high, left))
        found = (right - left) * (self._later[inside + 1] - self._later[low + 1])
        until, after = max(inside, min(high, right)) + 1, inside + 1
        found += right * (self._later[until] - self._later[after])
        found -= self._moments[until] - self._moments[after]
        return found if found > _ROUNDING else 0.0
