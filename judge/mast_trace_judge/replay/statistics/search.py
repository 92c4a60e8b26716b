"""The search: replays that keep a part of the run, at positions that tell most about the location."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mast_trace_judge.replay.statistics.evidence import SEARCH
from mast_trace_judge.replay.statistics.limits import Trial

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mast_trace_judge.replay.statistics.evidence import Evidence

LOCATED: Final = 0.97
"""Probability of an origin, or of a way of failing, at which the search ends."""

LEAST: Final = 0.001
"""Information of a replay, in nats, below which the search ends."""

START_COST: Final = 0.5
"""Cost of starting the program, in live calls for each decision of the run: the number of replays is
limited, too."""


def live_calls(evidence: Evidence, position: int) -> int:
    """Return the live model calls of a replay that keeps everything up to and including a position."""
    return evidence.plan.length - 1 - position


def measure(
    evidence: Evidence, position: int, runs: int, phase: str
) -> Iterator[tuple[Trial, ...]]:
    """Ask for replays that keep everything up to and including a position, and count them."""
    trial = Trial(evidence.plan.keep(position), phase, calls=live_calls(evidence, position))
    yield (trial,) * runs
    for _, result in evidence.results[-runs:]:
        evidence.count(position, result)


def search(evidence: Evidence) -> Iterator[tuple[Trial, ...]]:
    """Ask for replays until the origin is located, or the share of the search is used up."""
    limits = evidence.plan.limits
    while not _settled(evidence) and (position := _best(evidence)) is not None:
        if evidence.runs(*SEARCH) + limits.batch > limits.screening_runs:
            return
        if limits.search_calls is not None and evidence.search_calls >= limits.search_calls:
            return
        yield from measure(evidence, position, limits.batch, "screening")


def _settled(evidence: Evidence) -> bool:
    location = evidence.location
    kinds = location.kinds
    found = (kinds.systematic, kinds.diffuse, kinds.none, max(location.origins))
    return max(found) >= LOCATED


def _best(evidence: Evidence) -> int | None:
    location = evidence.location
    length = location.length
    told = {each: location.information(each) for each in range(-1, length)}
    best = max(told, key=lambda each: told[each] / (length - 1 - each + START_COST * length))
    return best if told[best] >= LEAST else None
