"""The page of a service's profile: how multi-agent it is."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

from mast_trace.exceptions import ConfigurationError
from mast_trace_dashboards.document import DataTable, Part, Sentence
from mast_trace_dashboards.queries import QUERIES
from mast_trace_dashboards.web.views import StoredPages, streamed
from mast_trace_lab.feedback import words as experiment_words
from mast_trace_lab.feedback.experiment import look_at
from mast_trace_lab.feedback.queries import EXPERIMENT_ARMS
from mast_trace_lab.teams import words as profile_words
from mast_trace_lab.teams.profile import LEAST, MOST_RUNS, ServiceProfile, left_out, service_profile

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.templating import Jinja2Templates

    from mast_trace_collector.storage import Store

MOST: Final = 3
"""Most experiments of which a page shows more than the name, the ones with the latest runs."""
_MOST_NAMES: Final = 5
_FEW: Final = f"Below {LEAST} runs with an outcome in both arms no difference is given."
COLUMNS: Final = (*experiment_words.ARM_COLUMNS[:-1], "agents a run", "lacks", "tokens a run")
"""Headings of the table of arms."""

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
        said: its arms and contrasts at a look that is not counted, or why they cannot be told; empty if it is
            not shown.
    """

    project: str
    name: str
    said: Sequence[Part] = ()


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
        return Variants(project, name, [Sentence(f"Nothing can be told of it: {error}.")])
    team = max(rows, key=lambda row: row["AgentsPerRun"] or 0)
    of_arm = {row["Arm"]: row for row in rows}
    found = look.conclusion
    arms = [
        (*experiment_words.arm_cells(arm)[:-1], *_team_cells(of_arm.get(arm.arm), team))
        for arm in found.arms
    ]
    few = {each.arm for each in found.arms if each.runs - each.missing < LEAST}
    contrasts = []
    for each in found.contrasts:
        first, difference, *others = experiment_words.contrast_cells(each)
        known = few.isdisjoint({each.treatment, each.control})
        contrasts.append((first, difference if known else "-", *others))
    said: list[Part] = [
        DataTable(f"Arms of {name}", COLUMNS, arms, frozenset({*range(1, 7), 8})),
        experiment_words.contrast_table(look.plan, contrasts),
        *map(Sentence, experiment_words.reasons(look)),
    ]
    if few:
        said.append(Sentence(_FEW, "muted"))
    return Variants(project, name, said)


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
        """Answer with the profile of a service, which takes seconds to measure; a part of it for the agents' page."""
        values = await asyncio.to_thread(self.values, request.query_params)
        if request.query_params.get("part"):
            values["advice"] = await asyncio.to_thread(values["advice"])
            return self._html(request, "_advice.html", **values)
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
            "profile": lambda: profile_words.said_of(self._profile(service, version)),
            "advice": lambda: profile_words.advice_of(self._profile(service, version)),
            "holds": f"{experiment_words.HOLDS} {profile_words.GAP_LEAVES_OPEN}",
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
