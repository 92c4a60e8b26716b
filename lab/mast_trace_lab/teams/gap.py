"""Gap to another variant: the team against one agent, or against itself without an agent.

Runs say in which variant of an experiment they took place. The gap is measured and never predicted: how much
a team gains depends on the task (arXiv 2512.08296 explains a third of the variance over 260 configurations).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from mast_trace_judge.intervals import newcombe
from mast_trace_judge.multi_agent.measure import mean

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mast_trace_judge.multi_agent.team_run import TeamRun

LEAST: Final = 20
"""Runs with a known outcome below which a side is not compared."""


@dataclass(frozen=True)
class Side:
    """The runs of one variant.

    Attributes:
        variant: its name.
        runs: with a known outcome.
        successes: of these.
        missing: runs without an outcome.
        tokens: mean input and output tokens of a run; None if none were counted.
    """

    variant: str
    runs: int
    successes: int
    missing: int
    tokens: float | None


@dataclass(frozen=True)
class Gap:
    """The difference of two variants.

    Attributes:
        team: the variant with all agents.
        other: the variant against it.
        difference: success share of the team minus the other's; None below 20 runs of a side.
        low: lower end of its 95 % interval (Newcombe 1998).
        high: its upper end.
        overhead: (tokens of the team - tokens of the other) / tokens of the other; None if unknown.
        amplification: failure share of the team by that of the other; None if the other never fails.
    """

    team: Side
    other: Side
    difference: float | None = None
    low: float | None = None
    high: float | None = None
    overhead: float | None = None
    amplification: float | None = None


def side(variant: str, runs: Sequence[TeamRun]) -> Side:
    """Return the counts of one variant."""
    known = [run for run in runs if run.trajectory.outcome in {"success", "failure"}]
    counted = [float(run.read + run.written) for run in runs if run.read + run.written]
    successes = sum(run.trajectory.outcome == "success" for run in known)
    return Side(variant, len(known), successes, len(runs) - len(known), mean(counted))


def gap(team: Side, other: Side) -> Gap:
    """Return the difference of two variants; without numbers where a side has too few runs."""
    if min(team.runs, other.runs) < LEAST:
        return Gap(team, other)
    low, high = newcombe((team.successes, team.runs), (other.successes, other.runs))
    failing = other.runs - other.successes
    return Gap(
        team,
        other,
        difference=team.successes / team.runs - other.successes / other.runs,
        low=low,
        high=high,
        overhead=team.tokens / other.tokens - 1 if team.tokens and other.tokens else None,
        amplification=(
            (1 - team.successes / team.runs) / (failing / other.runs) if failing else None
        ),
    )
