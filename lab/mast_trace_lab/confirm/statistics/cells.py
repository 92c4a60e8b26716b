"""Likelihoods of where success fell, for origins and points of no return between measured positions.

The likelihood depends on an origin only through the measured positions before it. All origins between
two neighbouring measured positions are therefore one cell; cell k lies behind the first k of them.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from mast_trace_lab.confirm.statistics.shapes import (
    FLOORS,
    LEVELS,
    LOWEST,
    REPAIRED,
    RISING,
    rate_before,
    rate_diffuse,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Count = tuple[int, int]
"""Successes and runs at a position."""

BEFORE = tuple((level, rises) for rises in (False, True) for level in LEVELS)
"""Shapes of V before the origin: level at the start, and whether it rises."""

_WEIGHTS = tuple(RISING[rises] / len(LEVELS) for _, rises in BEFORE)


def relative_log(rate: float, count: Count) -> float:
    """Return the log-likelihood of a rate, less that of the observed rate."""
    successes, runs = count
    found = 0.0
    if successes:
        found += successes * math.log(rate * runs / successes)
    if successes < runs:
        found += (runs - successes) * math.log((1 - rate) * runs / (runs - successes))
    return found


def running(values: Sequence[float]) -> list[float]:
    """Return the sums of the first 0, 1, ... values."""
    sums = [0.0]
    for each in values:
        sums.append(sums[-1] + each)
    return sums


class Cells:
    """Likelihoods by cell.

    Attributes:
        positions: measured positions, ascending.
        single: by cell of the origin and shape before, for what was measured before the origin.
        between: by cells of origin and point of no return and by shape, for what was measured before
            the point; `between_rates` is the same times the share of the success rate that is left.
        floor: by cell of the point of no return, for what was measured after; `floor_rates` is the same
            times the rate there.
        diffuse: by level, for a decline over the whole run.
        none: by shape, for no fall.
        systematic: for the floor everywhere, and the same times the rate.
    """

    def __init__(self, counts: Mapping[int, Count], length: int) -> None:
        """Compute them from successes and runs by position."""
        self.positions = sorted(position for position, (_, runs) in counts.items() if runs)
        measured = [counts[each] for each in self.positions]
        size = len(measured)
        self._after(measured)
        self.single = [[0.0] * len(BEFORE) for _ in range(size + 1)]
        self.between = [[[0.0] * len(BEFORE) for _ in self.single] for _ in self.single]
        self.between_rates = [[[0.0] * len(BEFORE) for _ in self.single] for _ in self.single]
        for index, (level, rises) in enumerate(BEFORE):
            rates = [rate_before(level, rises, each, length) for each in self.positions]
            self._before(index, rates, measured)
        self.none = self.single[size]
        self.diffuse = [
            math.exp(
                sum(
                    relative_log(rate_diffuse(level, position, length), count)
                    for position, count in zip(self.positions, measured, strict=True)
                )
            )
            / len(LEVELS)
            for level in LEVELS
        ]
        self.systematic = (sum(self._all_floor), sum(self._all_floor_rates))

    def _after(self, measured: Sequence[Count]) -> None:
        size = len(measured)
        sums = [
            (rate, weight, running([relative_log(rate, each) for each in measured]))
            for rate, weight in FLOORS
        ]
        found = [
            [(rate, weight * math.exp(each[size] - each[cell])) for rate, weight, each in sums]
            for cell in range(size + 1)
        ]
        self.floor = [sum(value for _, value in each) for each in found]
        self.floor_rates = [sum(rate * value for rate, value in each) for each in found]
        self._all_floor = [value for _, value in found[0]]
        self._all_floor_rates = [rate * value for rate, value in found[0]]

    def _before(self, index: int, rates: Sequence[float], measured: Sequence[Count]) -> None:
        size, weight = len(measured), _WEIGHTS[index]
        pairs = list(zip(rates, measured, strict=True))
        kept = running([relative_log(rate, count) for rate, count in pairs])
        for cell in range(size + 1):
            self.single[cell][index] = weight * math.exp(kept[cell])
        weight /= len(REPAIRED)
        for share in REPAIRED:
            left = running([relative_log(max(LOWEST, share * rate), each) for rate, each in pairs])
            for cell in range(size + 1):
                for point in range(cell, size + 1):
                    value = weight * math.exp(kept[cell] + left[point] - left[cell])
                    self.between[cell][point][index] += value
                    self.between_rates[cell][point][index] += share * value
