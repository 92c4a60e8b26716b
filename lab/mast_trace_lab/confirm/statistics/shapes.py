"""Shapes that the success rate V(t) of a failed run may have, with their prior weights.

V(t) is the success rate of replays that keep everything up to and including position t and run the rest
live; position -1 keeps nothing. Before the origin V is a level, or rises from it to 1, as it does where
each decision succeeds with the same chance. Between origin and point of no return it is a share of that:
a later decision may still repair the error. From the point of no return on it is a floor, the chance to
succeed by guessing.
"""

from __future__ import annotations

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
