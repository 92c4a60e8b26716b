"""Posterior of an error's location, and the information that another replay would give about it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from mast_trace_judge.replay.statistics.cells import BEFORE, Cells
from mast_trace_judge.replay.statistics.shapes import LEVELS, Kinds, rate_before, rate_diffuse

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from mast_trace_judge.replay.statistics.cells import Count
    from mast_trace_judge.replay.statistics.location_prior import LocationPrior


class _Part(NamedTuple):
    """A hypothesis: its weight, and its weight times the success rate at a position."""

    weight: float
    hits: float
    label: int


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
        single = [sum(cells.single[k]) * cells.floor[k] for k in range(size)]
        between = [
            [sum(cells.between[k][m]) * cells.floor[m] for m in range(size)] for k in range(size)
        ]
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

    def information(self, position: int) -> float:
        """Return the information of one replay at a position about the location, in nats."""
        parts = list(self._parts(position))
        total = sum(each.weight for each in parts)
        hits = sum(each.hits for each in parts)
        labels: dict[int, list[float]] = {}
        for each in parts:
            sums = labels.setdefault(each.label, [0.0, 0.0])
            sums[0] += each.weight
            sums[1] += each.hits
        left = sum(weight * _entropy(hit / weight) for weight, hit in labels.values() if weight)
        return max(0.0, _entropy(hits / total) - left / total)

    def _parts(self, position: int) -> Iterator[_Part]:
        cells, kinds, prior = self._cells, self._kinds, self._prior
        rates = [rate_before(level, rises, position, self.length) for level, rises in BEFORE]
        pieces = list(self._pieces(position))
        for number, (k, first) in enumerate(pieces):
            one = kinds.fall * prior.single(*first)
            if one:
                weight = one * sum(cells.single[k]) * cells.floor[k]
                if first[0] >= position:
                    hits = sum(map(_times, cells.single[k], rates)) * one * cells.floor[k]
                else:
                    hits = one * sum(cells.single[k]) * cells.floor_rates[k]
                yield _Part(weight, hits, number)
            for m, second in pieces[number:]:
                two = kinds.fall * prior.repairable(first, second)
                if not two:
                    continue
                found = cells.between[k][m]
                weight = two * sum(found) * cells.floor[m]
                if first[0] >= position:
                    hits = two * sum(map(_times, found, rates)) * cells.floor[m]
                elif second[0] >= position:
                    hits = sum(map(_times, cells.between_rates[k][m], rates)) * two * cells.floor[m]
                else:
                    hits = two * sum(found) * cells.floor_rates[m]
                yield _Part(weight, hits, number)
        weight, hits = cells.systematic
        yield _Part(kinds.systematic * weight, kinds.systematic * hits, -1)
        falling = [rate_diffuse(level, position, self.length) for level in LEVELS]
        hits = kinds.diffuse * sum(map(_times, cells.diffuse, falling))
        yield _Part(kinds.diffuse * sum(cells.diffuse), hits, -2)
        hits = kinds.none * sum(map(_times, cells.none, rates))
        yield _Part(kinds.none * sum(cells.none), hits, -3)

    def _pieces(self, position: int) -> Iterator[tuple[int, tuple[int, int]]]:
        """Yield cells with their positions; the cell around a position in two pieces."""
        for cell in range(len(self._edges) - 1):
            low, high = self._range(cell)
            if low < position < high:
                yield cell, (low, position)
                yield cell, (position, high)
            else:
                yield cell, (low, high)


def _times(left: float, right: float) -> float:
    return left * right


def likely(probabilities: Mapping[int, float], share: float = 0.9) -> tuple[tuple[int, float], ...]:
    """Return the fewest keys that together hold a share of the probability, most likely first."""
    found, held = [], 0.0
    for key, value in sorted(probabilities.items(), key=lambda each: (-each[1], each[0])):
        if held >= share * sum(probabilities.values()) or value <= 0:
            break
        found.append((key, value))
        held += value
    return tuple(found)
