"""Votes of the rules' findings for the decisive step."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from mast_trace_judge.local.acts import is_said
from mast_trace_judge.local.attribution.cascade import Vote
from mast_trace_judge.local.attribution.heirs import heirs
from mast_trace_judge.verdict import Evidence, ModeFinding

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from mast_trace.trajectory import Trajectory


class _Strength(NamedTuple):
    """Odds of a finding against the rest of the run, and the steps of the finding that they apply to."""

    exact: float
    heuristic: float
    place: int


_STRENGTHS = {
    "2.6": _Strength(2.5, 1.0, -1),
    "1.3": _Strength(0.6, 0.0, 0),  # the first of equal calls: the later ones repeat what it began
    "2.1": _Strength(1.5, 0.0, 0),
    "1.4": _Strength(1.5, 0.0, -1),
    "2.5": _Strength(1.5, 0.0, -1),
    "3.3": _Strength(1.2, 0.0, -1),
    "2.4": _Strength(0.8, 0.0, -1),
}
"""Strengths by failure mode. Modes without an entry describe the course of a run, not the decisive step:
in 150 failed loops of one agent with a strong heuristic finding of such a mode or an end on an error,
the finding named the faulty step once.
"""
DECIDING = frozenset(["2.6", "2.1", "1.4", "2.5", "3.3", "2.4"])
"""Modes whose exact finding shows the error itself, in any system."""


def votes(
    modes: Iterable[ModeFinding], trajectory: Trajectory, actors: Collection[int]
) -> list[Vote]:
    """Turn findings into votes for attributable steps.

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
        step = in_error(mode, trajectory)
        if odds and step in actors:
            found.append(Vote(step, odds * mode.probability, f"{mode.code}: {mode.reason}"))
    return found


def proven(
    modes: Iterable[ModeFinding], trajectory: Trajectory, actors: Collection[int]
) -> set[int]:
    """Return the attributable steps that an exact finding shows to be in error."""
    found = {
        in_error(mode, trajectory)
        for mode in modes
        if mode.evidence is Evidence.EXACT and mode.code in DECIDING and mode.steps
    }
    return found & set(actors)


def reaching(
    modes: Iterable[ModeFinding], trajectory: Trajectory, actors: Collection[int]
) -> set[int]:
    """Return those of the `proven` steps whose wrong figure reaches the run's answer."""
    return {
        step
        for mode in modes
        if mode.evidence is Evidence.EXACT and mode.steps
        for step in (in_error(mode, trajectory),)
        if step in actors and heirs(trajectory, step, mode).reaches_answer
    }


def in_error(mode: ModeFinding, trajectory: Trajectory) -> int:
    """Return the step of a finding that is the error itself.

    Among wrong statements it is the first one, because the others may build on it.
    """
    if mode.code == "2.6":
        known = [i for i in mode.steps if i < len(trajectory.steps)]
        return next((i for i in known if is_said(trajectory.steps[i])), mode.steps[-1])
    place = _STRENGTHS[mode.code].place if mode.code in _STRENGTHS else 0
    return mode.steps[min(place, len(mode.steps) - 1)]
