"""Presence: the success of runs in which an agent acted, against runs in which it did not.

It is a hint only: an agent is often called because a run is hard. Leaving the agent out on purpose, in an
experiment with variants, tells its effect (leave-one-out; arXiv 2605.27621).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from mast_trace_judge.intervals import newcombe

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mast_trace_judge.multi_agent.team_run import TeamRun

_LEAST: Final = 5


@dataclass(frozen=True)
class Presence:
    """Runs with known outcome, with and without an action of an agent.

    Attributes:
        agent: its name.
        with_it: successes and runs in which it acted.
        without: successes and runs in which it did not.
        low: lower end of the 95 % interval of the difference, with minus without (Newcombe 1998).
        high: its upper end.
    """

    agent: str
    with_it: tuple[int, int]
    without: tuple[int, int]
    low: float
    high: float


def presence(runs: Sequence[TeamRun]) -> list[Presence]:
    """Return the agents that act in some runs and not in others, at least five of each."""
    known = [run for run in runs if run.trajectory.outcome in {"success", "failure"}]
    found: list[Presence] = []
    for agent in sorted({agent for run in known for agent in run.agents}):
        sides: dict[bool, list[bool]] = {True: [], False: []}
        for run in known:
            sides[agent in run.agents].append(run.trajectory.outcome == "success")
        counts = [(sum(sides[acted]), len(sides[acted])) for acted in (True, False)]
        if min(count[1] for count in counts) >= _LEAST:
            low, high = newcombe(*counts)
            found.append(Presence(agent, counts[0], counts[1], low, high))
    return found
