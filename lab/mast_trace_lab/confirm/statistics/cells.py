"""Likelihoods of where success fell, for origins and points of no return between measured positions.

The likelihood depends on an origin only through the measured positions before it. All origins between
two neighbouring measured positions are therefore one cell; cell k lies behind the first k of them.

Shapes that the success rate V(t) of a failed run may have, with their prior weights.

V(t) is the success rate of replays that keep everything up to and including position t and run the rest
live; position -1 keeps nothing. Before the origin V is a level, or rises from it to 1, as it does where
each decision succeeds with the same chance. Between origin and point of no return it is a share of that:
a later decision may still repair the error. From the point of no return on it is a floor, the chance to
succeed by guessing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

LEVELS: Final = (0.2, 0.35, 0.5, 0.65, 0.8, 0.93)
"""Success rates at the start, equally likely."""

RISING: Final = (0.7, 0.3)
"""Prior weights of a level that stays and of one that rises."""

REPAIRED: Final = (0.25, 0.5)
"""Shares of the success rate that are left after an error that may be repaired, equally likely.

Weaker falls are no origin: most are below the smallest effect that a proof needs.
"""

FLOORS: Final = ((0.01, 0.75), (0.1, 0.25))
"""Success rates after the point of no return, with their prior weights."""

SINGLE: Final = 0.7
"""Prior weight of an error that cannot be repaired, among the runs with an origin."""

LOWEST, HIGHEST = 0.01, 0.98

Count = tuple[int, int]
"""Successes and runs at a position."""
BEFORE = tuple((level, rises) for rises in (False, True) for level in LEVELS)
"""Shapes of V before the origin: level at the start, and whether it rises."""
_WEIGHTS = tuple(RISING[rises] / len(LEVELS) for _, rises in BEFORE)


@dataclass(frozen=True)
class Kinds:
    """Probabilities of the ways in which a run may have failed; they add up to 1.

    Attributes:
        fall: success falls at one step, the origin, and at most once more.
        systematic: success is near 0 from the start.
        diffuse: success declines over the whole run.
        none: success does not fall at all: the failure was chance after the last model answer.
    """

    fall: float = 0.7
    systematic: float = 0.15
    diffuse: float = 0.1
    none: float = 0.05


def rate_before(level: float, rises: bool, position: int, length: int) -> float:
    """Return V before the origin.

    Args:
        level: V at the start.
        rises: whether V rises to 1, by the same factor at each decision.
        position: -1 for the start, else index of a decision.
        length: number of decisions.
    """
    if not rises:
        return level
    return min(HIGHEST, float(level ** ((length - 1 - position) / length)))


def rate_diffuse(level: float, position: int, length: int) -> float:
    """Return V at a position of a run in which it declines from `level` to 0 at the same pace."""
    return max(LOWEST, level * (length - 1 - position) / length)


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
