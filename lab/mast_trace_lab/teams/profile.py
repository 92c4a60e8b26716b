"""The profile of a service: how multi-agent it is, from its newest runs.

Gap to another variant: the team against one agent, or against itself without an agent.

Runs say in which variant of an experiment they took place. The gap is measured and never predicted: how much
a team gains depends on the task (arXiv 2512.08296 explains a third of the variance over 260 configurations).
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from mast_trace.exceptions import ConfigurationError
from mast_trace_dashboards.queries import QUERIES
from mast_trace_dashboards.run_names import NotFound
from mast_trace_judge.intervals import newcombe
from mast_trace_judge.multi_agent.measure import TeamRun, mean
from mast_trace_judge.multi_agent.profile import TeamProfile, measured, read_team_runs
from mast_trace_lab.feedback.store import experiment_runs, projects_with

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime

    from mast_trace_collector.storage import Store


LEAST: Final = 20
"""Runs with a known outcome below which a side is not compared."""

MOST_OF_AN_ARM: Final = 1000
"""Newest runs of an arm that are read."""


@dataclass(frozen=True)
class VariantRuns:
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

    team: VariantRuns
    other: VariantRuns
    difference: float | None = None
    low: float | None = None
    high: float | None = None
    overhead: float | None = None
    amplification: float | None = None


def side(variant: str, runs: Sequence[TeamRun]) -> VariantRuns:
    """Return the counts of one variant."""
    known = [run for run in runs if run.trajectory.outcome in {"success", "failure"}]
    counted = [float(run.read + run.written) for run in runs if run.read + run.written]
    successes = sum(run.trajectory.outcome == "success" for run in known)
    return VariantRuns(variant, len(known), successes, len(runs) - len(known), mean(counted))


def gap(team: VariantRuns, other: VariantRuns) -> Gap:
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


MOST_RUNS: Final = 300
"""Runs that are read unless told otherwise: their intervals are narrow enough to tell halves from thirds."""


@dataclass(frozen=True)
class ServiceProfile:
    """A service's profile, and the runs that it is made of.

    Attributes:
        service: its name.
        version: of the service; empty for all.
        profile: the measures.
        unread: runs that were too long to be read.
        more: whether the service has more runs in that time than were read.
    """

    service: str
    version: str
    profile: TeamProfile
    unread: int
    more: bool


def service_profile(
    store: Store,
    service: str,
    *,
    version: str = "",
    since: datetime | None = None,
    project: str | None = None,
    most: int = MOST_RUNS,
    tell: Callable[[int, int], None] | None = None,
) -> ServiceProfile:
    """Read the newest finished runs of a service and measure them.

    Args:
        store: the database; one project's, if only that may be seen.
        service: its name.
        version: only this version's runs.
        since: only runs that began since then.
        project: only this project's.
        most: runs to read.
        tell: called with the runs that are done, and with their number.

    Raises:
        StorageError: the database does not answer.
    """
    rows = QUERIES["team_runs"].run(
        store,
        services=[service],
        projects=[project] if project else [],
        versions=[version] if version else [],
        limit=most + 1,
        **({"since": since} if since else {}),
    )
    more = len(rows) > most
    rows = rows[:most]
    runs: list[TeamRun] = []
    for run, done in read_team_runs(store, rows):
        if run is not None:
            runs.append(run)
        if tell:
            tell(done, len(rows))
    return ServiceProfile(service, version, measured(runs), len(rows) - len(runs), more)


def left_out(
    store: Store, service: str, *, since: datetime | None = None, project: str | None = None
) -> int:
    """Return the number of a service's runs, of all versions, whose spans retention has left out."""
    rows = QUERIES["left_out"].run(
        store,
        services=[service],
        projects=[project] if project else [],
        **({"since": since} if since else {}),
    )
    return sum(int(row["Runs"]) for row in rows)
