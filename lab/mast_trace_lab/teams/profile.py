"""The profile of a service: how multi-agent it is, from its newest runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from mast_trace_dashboards.queries import QUERIES
from mast_trace_judge.multi_agent.profile import TeamProfile, measured, read_team_runs

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from mast_trace_collector.storage import Store
    from mast_trace_judge.multi_agent.team_run import TeamRun

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
