"""The gap between a team and the other variants of an experiment: one agent, or one agent less."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

from mast_trace.exceptions import ConfigurationError
from mast_trace_dashboards.run_names import NotFound
from mast_trace_judge.multi_agent.stored import read_team_runs
from mast_trace_lab.feedback.store import experiment_runs, projects_with
from mast_trace_lab.teams.gap import Gap, gap, side

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mast_trace_collector.storage import Store
    from mast_trace_judge.multi_agent.team_run import TeamRun

MOST_OF_AN_ARM: Final = 1000
"""Newest runs of an arm that are read."""


def team_gaps(
    store: Store,
    experiment: str,
    *,
    team: str = "",
    project: str | None = None,
    tell: Callable[[int, int], None] | None = None,
) -> list[Gap]:
    """Compare the team with every other arm of an experiment.

    Args:
        store: the database; one project's, if only that may be seen.
        experiment: its name.
        team: the arm with all agents; by default the one in whose runs the most agents act.
        project: only this project's.
        tell: called with the runs that are done, and with their number.

    Raises:
        NotFound: there is no such experiment, or no such arm.
        ConfigurationError: several projects have one of this name.
        StorageError: the database does not answer.
    """
    arms = _arms(store, experiment, project, tell)
    if team and team not in arms:
        raise NotFound(f"{experiment} has no arm {team!r}; it has {', '.join(sorted(arms))}")
    chosen = team or max(sorted(arms), key=lambda arm: _agents(arms[arm]))
    own = side(chosen, arms[chosen])
    return [gap(own, side(arm, runs)) for arm, runs in sorted(arms.items()) if arm != chosen]


def _arms(
    store: Store,
    experiment: str,
    project: str | None,
    tell: Callable[[int, int], None] | None,
) -> Mapping[str, Sequence[TeamRun]]:
    """Return the runs of an experiment by arm."""
    owners = projects_with(store, experiment) if project is None else [project]
    if len(owners) > 1:
        raise ConfigurationError(
            f"several projects have an experiment {experiment}: name one by --project"
        )
    owner = owners[0] if owners else ""
    rows = defaultdict(list)
    for run in experiment_runs(store, owner, experiment):
        # A run without its end has no outcome, and counts as missing.
        told = {"Project": owner, "TraceId": run.trace_id, "Spans": 0, "Outcome": run.outcome}
        rows[run.arm].append(told)
    if not rows:
        raise NotFound(f"there is no experiment {experiment} with runs yet")
    read = [row for of_arm in rows.values() for row in of_arm[-MOST_OF_AN_ARM:]]
    arm_of = {row["TraceId"]: arm for arm, of_arm in rows.items() for row in of_arm}
    arms: dict[str, list[TeamRun]] = {arm: [] for arm in rows}
    for found, done in read_team_runs(store, read):
        if found is not None:
            arms[arm_of[found.trajectory.trace_id]].append(found)
        if tell:
            tell(done, len(read))
    return arms


def _agents(runs: Sequence[TeamRun]) -> float:
    """Return the mean number of acting agents."""
    return sum(len(run.agents) for run in runs) / max(1, len(runs))
