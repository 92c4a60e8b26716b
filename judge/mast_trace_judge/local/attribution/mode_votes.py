"""What the rules' findings say about the decisive step."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from mast_trace_judge.local.attribution.cascade import Vote
from mast_trace_judge.verdict import Evidence

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from mast_trace.trajectory import Trajectory
    from mast_trace_judge.verdict import ModeFinding


class _Strength(NamedTuple):
    """Odds against everything else in the run, and which of the finding's steps they are for."""

    exact: float
    heuristic: float
    place: int


_STRENGTHS = {
    "2.6": _Strength(2.5, 1.0, -1),  # the wrong statement, not the result before it
    "1.3": _Strength(2.0, 0.0, 1),  # the first repetition
    "2.1": _Strength(1.5, 0.0, 0),
    "1.4": _Strength(1.5, 0.2, -1),
    "2.5": _Strength(1.5, 0.2, -1),
    "3.3": _Strength(1.2, 0.3, -1),
    "2.4": _Strength(0.8, 0.2, -1),
    "3.1": _Strength(0.7, 0.3, -1),
    "3.2": _Strength(0.6, 0.4, 0),
}
"""Modes that are not named say how a run went, not which step decided it."""


def votes(
    modes: Iterable[ModeFinding], trajectory: Trajectory, actors: Collection[int]
) -> list[Vote]:
    """Turn findings into votes for steps that somebody can answer for.

    Heuristic findings count in recorded runs only: in transcripts, where messages and tool runs
    cannot be told apart, they drew the attribution away from the decisive step.
    """
    recorded = any(step.span_id for step in trajectory.steps)
    found = []
    for mode in modes:
        strength = _STRENGTHS.get(mode.code)
        if strength is None or not mode.steps:
            continue
        exact = mode.evidence is Evidence.EXACT
        odds = strength.exact if exact else strength.heuristic if recorded else 0.0
        step = mode.steps[min(strength.place, len(mode.steps) - 1)]
        if odds and step in actors:
            found.append(Vote(step, odds * mode.probability, f"{mode.code}: {mode.reason}"))
    return found
