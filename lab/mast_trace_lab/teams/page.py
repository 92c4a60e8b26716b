"""The page of a service's profile: how multi-agent it is."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

from mast_trace.exceptions import ConfigurationError
from mast_trace_dashboards.queries import QUERIES
from mast_trace_dashboards.web.streaming import streamed
from mast_trace_dashboards.web.views import StoredPages
from mast_trace_lab.feedback import words as experiment_words
from mast_trace_lab.feedback.experiment import Look, look_at
from mast_trace_lab.feedback.queries import EXPERIMENT_ARMS
from mast_trace_lab.teams import words as profile_words
from mast_trace_lab.teams.profile import (
    LEAST,
    MOST_RUNS,
    ServiceProfile,
    left_out,
    service_profile,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.templating import Jinja2Templates

    from mast_trace_collector.storage import Store

MOST: Final = 3
"""Most experiments of which a page shows more than the name, the ones with the latest runs."""
_MOST_NAMES: Final = 5
COLUMNS: Final = (*experiment_words.ARM_COLUMNS[:-1], "agents a run", "lacks", "tokens a run")
"""Headings of `Variants.arms`."""

FRESH_SECONDS = 60.0
"""Time for which a measured profile is shown, even if new runs arrive: measuring takes seconds."""
_KEPT: Final = 32
_VERSIONS: Final = 20


@dataclass(frozen=True)
class Variants:
    """One experiment.

    Attributes:
        project: its project.
        name: its name.
        look: its state, at a look that is not counted; None if it cannot be told or is not shown.
        problem: the reason why it cannot be told; empty otherwise.
        arms: a row of cells for each arm.
    """

    project: str
    name: str
    look: Look | None = None
    problem: str = ""
    arms: tuple[tuple[str, ...], ...] = ()

    @property
    def contrasts(self) -> Iterator[tuple[str, ...]]:
        """A row of cells for each contrast, without a difference where an arm has few outcomes."""
        if self.look is None:
            return
        found = self.look.conclusion
        known = {each.arm: each.runs - each.missing for each in found.arms}
        for each in found.contrasts:
            cells = experiment_words.contrast_cells(each)
            few = min(known[each.treatment], known[each.control]) < LEAST
            yield (cells[0], "-" if few else cells[1], *cells[2:])

    @property
    def few(self) -> bool:
        """True if some arm has too few outcomes for a difference."""
        arms = self.look.conclusion.arms if self.look else ()
        return any(each.runs - each.missing < LEAST for each in arms)


def team_variants(store: Store, service: str) -> list[Variants]:
    """Return the experiments, the one with the latest run first; looks are not counted.

    Args:
        store: the database; one project's, if only that may be seen.
        service: in which some of their runs were recorded.

    Raises:
        StorageError: the database does not answer.
    """
    by_name: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for row in EXPERIMENT_ARMS.run(store):
        by_name.setdefault((row["Project"], row["Experiment"]), []).append(row)
    found = [
        (*key, rows)
        for key, rows in by_name.items()
        if rows[0]["Differ"] and any(service in row["Services"] for row in rows)
    ]
    shown = [_shown(store, *each) for each in found[:MOST]]
    return shown + [Variants(project, name) for project, name, _ in found[MOST:]]


def _shown(store: Store, project: str, name: str, rows: Sequence[Mapping[str, Any]]) -> Variants:
    try:
        look = look_at(store, project, name, count=False)
    except ConfigurationError as error:
        return Variants(project, name, problem=str(error))
    team = max(rows, key=lambda row: row["AgentsPerRun"] or 0)
    of_arm = {row["Arm"]: row for row in rows}
    arms = [
        (
            *experiment_words.arm_cells(result)[:-1],
            *_team_cells(of_arm.get(result.arm), team),
        )
        for result in look.conclusion.arms
    ]
    return Variants(project, name, look, arms=tuple(arms))


def _team_cells(row: Mapping[str, Any] | None, team: Mapping[str, Any]) -> tuple[str, str, str]:
    """Return the agents of an arm, those that it lacks of the largest team, and its tokens."""
    if row is None or row["AgentsPerRun"] is None:
        return "-", "-", "-"
    lacking = [agent for agent in team["Agents"] if agent not in row["Agents"]]
    names = ", ".join(lacking[:_MOST_NAMES])
    more = f" and {len(lacking) - _MOST_NAMES} more" if len(lacking) > _MOST_NAMES else ""
    tokens = row["TokensPerRun"]
    return (
        f"{row['AgentsPerRun']:.1f}",
        f"{names}{more}" or "-",
        "-" if tokens is None else f"{tokens:,.0f}",
    )


class ProfilePage(StoredPages):
    """Profiles of the services of a store.

    One is measured at a time, and again only after new runs, once in `FRESH_SECONDS` at most.

    Args:
        store: one project's, if only that may be seen.
        templates: of the pages.
    """

    def __init__(self, store: Store, templates: Jinja2Templates) -> None:
        super().__init__(store, templates)
        self._measuring = Lock()
        self._kept: dict[tuple[str, str], tuple[float, object, ServiceProfile]] = {}

    async def profile(self, request: Request) -> Response:
        """Answer with the profile of a service, which takes seconds to measure."""
        values = await asyncio.to_thread(self.values, request.query_params)
        return streamed(self._templates, request, "profile.html", values)

    def values(self, query: Mapping[str, str]) -> dict[str, Any]:
        """Return the variables of the template; the profile is measured while the page is sent."""
        counts = QUERIES["filter_values"].run(self._store)
        services = [row["Value"] for row in counts if row["Filter"] == "service"]
        service = query.get("service", "") or next(iter(services), "")
        version = query.get("version", "")
        versions = QUERIES["teams_by_version"].run(self._store, services=[service], limit=_VERSIONS)
        if version:
            gone = sum(row["LeftOut"] for row in versions if row["Version"] == version)
        else:
            gone = left_out(self._store, service)
        return {
            "services": services,
            "service": service,
            "version": version,
            "versions": versions if service else [],
            "left_out": gone,
            "variants": lambda: team_variants(self._store, service),
            "variant_columns": COLUMNS,
            "experiment_words": experiment_words,
            "least": LEAST,
            "profile": lambda: self._profile(service, version),
            "words": profile_words,
            "most": MOST_RUNS,
        }

    def _profile(self, service: str, version: str) -> ServiceProfile:
        newest = QUERIES["team_runs"].run(
            self._store, services=[service], versions=[version] if version else [], limit=2
        )
        state = tuple((row["TraceId"], row["Spans"], row["Outcome"]) for row in newest)
        with self._measuring:
            kept = self._kept.get((service, version))
            if kept is not None and (
                kept[1] == state or time.monotonic() - kept[0] < FRESH_SECONDS
            ):
                return kept[2]
            found = service_profile(self._store, service, version=version)
            if len(self._kept) >= _KEPT:
                self._kept.clear()
            self._kept[service, version] = (time.monotonic(), state, found)
            return found
