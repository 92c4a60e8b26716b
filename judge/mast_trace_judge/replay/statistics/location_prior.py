"""Prior of the location of an error: where success first fell, and from where it stays gone."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

from mast_trace_judge.replay.statistics.shapes import SINGLE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_ROUNDING: Final = 1e-14

UNIFORM: Final = 0.35
"""Share of the prior that does not follow the judge."""


def origin_weights(length: int, candidates: Mapping[int, float]) -> tuple[float, ...]:
    """Return the prior of the origin by position.

    Args:
        length: number of decisions.
        candidates: the judge's probabilities by position; negative ones are left out.
    """
    weights = [max(0.0, candidates.get(each, 0.0)) for each in range(length)]
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
        self._single = [0.0]
        self._later: list[list[float]] = [[0.0] * (self.length + 1)]
        for origin, weight in enumerate(weights):
            single = weight * (SINGLE if origin < last else 1.0)
            self._single.append(self._single[-1] + single)
            each = (weight - single) / max(1, last - origin)
            above, row = self._later[-1], [0.0]
            for point in range(self.length):
                inside = each if point > origin else 0.0
                row.append(row[-1] + above[point + 1] - above[point] + inside)
            self._later.append(row)

    def single(self, after: int, until: int) -> float:
        """Return the weight of an origin in (after, until] that is the point of no return too."""
        return self._single[until + 1] - self._single[after + 1]

    def repairable(self, origin: tuple[int, int], point: tuple[int, int]) -> float:
        """Return the weight of an origin and a later point, each in a range (after, until]."""
        (low, high), (left, right) = origin, point
        until, after = self._later[high + 1], self._later[low + 1]
        found = until[right + 1] - after[right + 1] - until[left + 1] + after[left + 1]
        return found if found > _ROUNDING else 0.0


@lru_cache(maxsize=64)
def location_prior(weights: tuple[float, ...]) -> LocationPrior:
    """Return the prior of these weights; equal weights share it."""
    return LocationPrior(weights)
