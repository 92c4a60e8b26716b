"""Posterior of an error's location, and the information that another replay would give about it."""

from __future__ import annotations

import math
from operator import mul
from typing import TYPE_CHECKING

from mast_trace_lab.confirm.statistics.cells import (
    BEFORE,
    LEVELS,
    Cells,
    Count,
    Kinds,
    rate_before,
    rate_diffuse,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from mast_trace_lab.confirm.statistics.plan import LocationPrior


def _entropy(rate: float) -> float:
    if not 0 < rate < 1:
        return 0.0
    return -rate * math.log(rate) - (1 - rate) * math.log(1 - rate)


class Location:
    """The posterior.

    Attributes:
        length: number of decisions.
        kinds: probabilities of the ways of failing.
        origins: probability by position that success first fell there.
        points: probability by position that it is the point of no return.
        both: probability that origin and point of no return differ.
    """

    def __init__(
        self, prior: LocationPrior, counts: Mapping[int, Count], kinds: Kinds | None = None
    ) -> None:
        """Compute it.

        Args:
            prior: of origin and point of no return.
            counts: successes and runs by position, -1 for the start.
            kinds: prior of the ways of failing.
        """
        self._prior = prior
        self.length = prior.length
        self._cells = Cells(counts, self.length)
        self._kinds = kinds or Kinds()
        self._edges = [-1, *self._cells.positions, self.length - 1]
        self._weigh()

    def _range(self, cell: int) -> tuple[int, int]:
        """Return the positions (after, until] of a cell."""
        low, high = self._edges[cell], self._edges[cell + 1]
        return low, max(low, high)

    def _weigh(self) -> None:
        cells, kinds, prior = self._cells, self._kinds, self._prior
        size = len(cells.positions) + 1
        self._single_sums = [sum(each) for each in cells.single]
        self._between_sums = [[sum(each) for each in row] for row in cells.between]
        self._single = single = [*map(mul, self._single_sums, cells.floor)]
        self._between = between = [[*map(mul, row, cells.floor)] for row in self._between_sums]
        self.origins = [0.0] * self.length
        self.points = [0.0] * self.length
        self.both = 0.0
        for k in range(size):
            for position in range(self._range(k)[0] + 1, self._range(k)[1] + 1):
                weight = kinds.fall * prior.single(position - 1, position) * single[k]
                self.origins[position] += weight
                self.points[position] += weight
            for m in range(k, size):
                first, second = self._range(k), self._range(m)
                likelihood = kinds.fall * between[k][m]
                self.both += likelihood * prior.repairable(first, second)
                for position in range(first[0] + 1, first[1] + 1):
                    near = (position - 1, position)
                    self.origins[position] += likelihood * prior.repairable(near, second)
                for position in range(second[0] + 1, second[1] + 1):
                    near = (position - 1, position)
                    self.points[position] += likelihood * prior.repairable(first, near)
        others = (
            kinds.systematic * cells.systematic[0],
            kinds.diffuse * sum(cells.diffuse),
            kinds.none * sum(cells.none),
        )
        fall = sum(self.origins)
        self._total = fall + sum(others)
        self.kinds = Kinds(*(each / self._total for each in (fall, *others)))
        self.origins = [each / self._total for each in self.origins]
        self.points = [each / self._total for each in self.points]
        self.both /= self._total

    def information(self, position: int, *, points: bool = False) -> float:
        """Return the information of one replay at a position about the location, in nats.

        Labels are the origin, as far as this replay and the measured positions tell it, and the other
        ways of failing.

        Args:
            position: the position.
            points: whether points of no return are told apart, too.
        """
        labels = self._labels(position, points=points)
        total, hits = sum(each for each, _ in labels), sum(each for _, each in labels)
        left = sum(weight * _entropy(hit / weight) for weight, hit in labels if weight)
        return max(0.0, _entropy(hits / total) - left / total)

    def rate(self, position: int) -> float:
        """Return the expected success rate at a position."""
        labels = self._labels(position)
        return sum(each for _, each in labels) / sum(each for each, _ in labels)

    def _labels(self, position: int, *, points: bool = False) -> list[tuple[float, float]]:
        """Return the weight of each label, and the weight times the success rate at a position."""
        cells, kinds, prior = self._cells, self._kinds, self._prior
        rates = [rate_before(level, rises, position, self.length) for level, rises in BEFORE]
        pieces = list(self._pieces(position))
        found = []
        for number, (k, first) in enumerate(pieces):
            is_before = first[0] >= position
            one = prior.single(*first)
            weight = one * self._single[k]
            hits = one * self._single_sums[k] * cells.floor_rates[k]
            if is_before:
                hits = one * sum(map(mul, cells.single[k], rates)) * cells.floor[k]
            for m, second in pieces[number:]:
                two = prior.repairable(first, second)
                if two:
                    if is_before:
                        more = sum(map(mul, cells.between[k][m], rates)) * cells.floor[m]
                    elif second[0] >= position:
                        more = sum(map(mul, cells.between_rates[k][m], rates)) * cells.floor[m]
                    else:
                        more = self._between_sums[k][m] * cells.floor_rates[m]
                    if points:
                        found.append(
                            (kinds.fall * two * self._between[k][m], kinds.fall * two * more)
                        )
                    else:
                        weight += two * self._between[k][m]
                        hits += two * more
            found.append((kinds.fall * weight, kinds.fall * hits))
        weight, hits = cells.systematic
        found.append((kinds.systematic * weight, kinds.systematic * hits))
        falling = [rate_diffuse(level, position, self.length) for level in LEVELS]
        hits = sum(map(mul, cells.diffuse, falling))
        found.append((kinds.diffuse * sum(cells.diffuse), kinds.diffuse * hits))
        hits = sum(map(mul, cells.none, rates))
        found.append((kinds.none * sum(cells.none), kinds.none * hits))
        return found

    def _pieces(self, position: int) -> Iterator[tuple[int, tuple[int, int]]]:
        """Yield cells with their positions; the cell around a position in two pieces."""
        for cell in range(len(self._edges) - 1):
            low, high = self._range(cell)
            if low < position < high:
                yield cell, (low, position)
                yield cell, (position, high)
            else:
                yield cell, (low, high)


def likely(probabilities: Mapping[int, float], share: float = 0.9) -> tuple[tuple[int, float], ...]:
    """Return the fewest keys that together hold a share of the probability, most likely first."""
    found, held = [], 0.0
    for key, value in sorted(probabilities.items(), key=lambda each: (-each[1], each[0])):
        if held >= share * sum(probabilities.values()) or value <= 0:
            break
        found.append((key, value))
        held += value
    return tuple(found)
