"""The search: replays that keep a part of the run, at positions that tell most about the location."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Final

from mast_trace_lab.program.budget import ReplayTrial

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mast_trace_lab.confirm.statistics.evidence import ExperimentState

LOCATED: Final = 0.97
"""Probability of an origin, or of a way of failing, at which the search ends."""

LEAST: Final = 0.001
"""Information of a replay, in nats, below which the search ends."""

START_COST: Final = 0.5
"""Cost of starting the program, in live calls for each decision of the run: the number of replays is
limited, too."""


def live_calls(evidence: ExperimentState, position: int) -> int:
    """Return the live model calls of a replay that keeps everything up to and including a position."""
    return evidence.plan.length - 1 - position


def measure(
    evidence: ExperimentState, position: int, runs: int, phase: str
) -> Iterator[tuple[ReplayTrial, ...]]:
    """Ask for replays that keep everything up to and including a position, and count them."""
    trial = ReplayTrial(evidence.plan.keep(position), phase, calls=live_calls(evidence, position))
    before = len(evidence.results)
    if runs:
        yield (trial,) * runs
    for _, result in evidence.results[before:]:
        evidence.count(position, result)


def search(evidence: ExperimentState, *, points: bool = False) -> Iterator[tuple[ReplayTrial, ...]]:
    """Ask for replays until the origin is located, or the share of the search is used up.

    Args:
        evidence: of the experiment.
        points: whether the point of no return is searched instead.
    """
    limits = evidence.plan.limits
    while not _settled(evidence, points) and (position := _best(evidence, points)) is not None:
        if evidence.without_outcome:
            return
        if evidence.searched + limits.batch > limits.screening_runs:
            return
        if limits.search_calls is not None and evidence.search_calls >= limits.search_calls:
            return
        yield from measure(evidence, position, limits.batch, "screening")


def _settled(evidence: ExperimentState, points: bool) -> bool:
    location = evidence.location
    kinds = location.kinds
    best = max(location.points if points else location.origins)
    return max(kinds.systematic, kinds.diffuse, kinds.none, best) >= LOCATED


def _best(evidence: ExperimentState, points: bool) -> int | None:
    location = evidence.location
    length = location.length
    told = {each: location.information(each, points=points) for each in _worth_measuring(evidence)}
    best = max(told, key=lambda each: told[each] / (length - 1 - each + START_COST * length))
    return best if told[best] >= LEAST else None


def _worth_measuring(evidence: ExperimentState) -> set[int]:
    """Return the measured positions, and the ends and the middle of the gaps between them.

    The middle divides the probability of a fall in the gap.
    """
    location, length = evidence.location, evidence.plan.length
    chances = [*map(max, location.origins, location.points)]
    edges = sorted({-1, length - 1, *evidence.counts})
    found = set(edges)
    for low, high in pairwise(edges):
        gap = range(low + 1, high)
        if gap:
            half, held = sum(chances[low + 1 : high + 1]) / 2, 0.0
            found |= {gap[0], gap[-1]}
            for position in gap:
                held += chances[position]
                if held >= half:
                    found.add(position)
                    break
    return found
