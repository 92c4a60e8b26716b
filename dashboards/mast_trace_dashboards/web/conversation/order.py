"""The order of agents in a column, in which arrows are short, cross little, and lead down from those who began.

Arrows between agents of a column are arcs beside it. Short arcs rarely cross, so the sum of their lengths is made
small by sifting (Rudell 1993): each agent in turn goes to the place where the sum is least, until none moves.
"""

from __future__ import annotations

import math
from itertools import accumulate
from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_BEFORE: Final = 4.0
"""Factor of the length of an arrow if its later agent stands above the earlier one: reading goes down."""
_WORK: Final = 2_000_000
"""Additions after which no further round begins: about a second."""

Agent = TypeVar("Agent")


def ordered(
    agents: Sequence[Agent], times: Mapping[tuple[Agent, Agent], int], *, last: bool = False
) -> list[Agent]:
    """Return agents in an order in which those who write to each other stand close.

    Args:
        agents: by their first action; the first one stays at the top.
        times: number of messages from one to another.
        last: whether the last one stays at the bottom.
    """
    numbers = {agent: number for number, agent in enumerate(agents)}
    pulls = [
        (numbers[sender], numbers[to], 1 + math.log2(count))
        for (sender, to), count in times.items()
        if sender != to
    ]
    order = list(range(len(agents)))
    moving = order[1:-1] if last else order[1:]
    each = len(order) * (3 * len(pulls) + len(order)) + 1
    for _ in range(max(1, min(20, _WORK // each))):
        before = list(order)
        for agent in moving:
            order = _sifted(order, agent, pulls, last=last)
        if order == before:
            break
    return [agents[number] for number in order]


def _sifted(
    order: Sequence[int], agent: int, pulls: Sequence[tuple[int, int, float]], *, last: bool
) -> list[int]:
    """Return the order with one agent at its best place, the others in the order that they have."""
    rest = [each for each in order if each != agent]
    places = {each: place for place, each in enumerate(rest)}
    # Arrows that pass a gap grow by one place if the agent goes there.
    passing = [0.0] * (len(rest) + 1)
    own: list[tuple[int, float, float]] = []
    for sender, to, pull in pulls:
        earlier, later = min(sender, to), max(sender, to)
        if agent == earlier:
            own.append((places[later], pull, pull * _BEFORE))
        elif agent == later:
            own.append((places[earlier], pull * _BEFORE, pull))
        else:
            one, other = places[earlier], places[later]
            weight = pull if one < other else pull * _BEFORE
            passing[min(one, other) + 1] += weight
            passing[max(one, other) + 1] -= weight
    costs = list(accumulate(passing))
    for gap in range(len(rest) + 1):
        for place, above, below in own:
            costs[gap] += above * (place - gap + 1) if place >= gap else below * (gap - place)
    gaps = range(1, len(rest) + (0 if last else 1))
    here = order.index(agent)
    best = min(gaps, key=lambda gap: (round(costs[gap], 6), abs(gap - here)))
    return [*rest[:best], agent, *rest[best:]]
