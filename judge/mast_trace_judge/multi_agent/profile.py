"""The profile of a system: all measures of its runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mast_trace_judge.multi_agent.concurrency import concurrency
from mast_trace_judge.multi_agent.hand_offs import hand_offs
from mast_trace_judge.multi_agent.presence import Presence, presence
from mast_trace_judge.multi_agent.provenance import provenance
from mast_trace_judge.multi_agent.roles import roles
from mast_trace_judge.multi_agent.structure import structure
from mast_trace_judge.multi_agent.talk import talk
from mast_trace_judge.multi_agent.uptake import uptake
from mast_trace_judge.multi_agent.verification import verification

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mast_trace_judge.multi_agent.measure import Measure
    from mast_trace_judge.multi_agent.team_run import TeamRun


@dataclass(frozen=True)
class Profile:
    """The measures of one system, none of which is a score.

    Attributes:
        runs: number of runs that were read.
        teams: of these, the runs in which several agents act.
        without_content: runs whose texts were not recorded; measures of words do not see them.
        measures: in the order of the documentation.
        presences: success with and without each agent: hints, not effects.
    """

    runs: int
    teams: int
    without_content: int
    measures: tuple[Measure, ...]
    presences: tuple[Presence, ...]


def measured(runs: Sequence[TeamRun]) -> Profile:
    """Return the profile of a system from its runs, all of one variant."""
    return Profile(
        runs=len(runs),
        teams=sum(len(run.agents) > 1 for run in runs),
        without_content=sum(not any(step.text for step in run.actions) for run in runs),
        measures=(
            uptake(runs),
            provenance(runs),
            roles(runs),
            *talk(runs),
            concurrency(runs),
            *verification(runs),
            *hand_offs(runs),
            *structure(runs),
        ),
        presences=tuple(presence(runs)),
    )
