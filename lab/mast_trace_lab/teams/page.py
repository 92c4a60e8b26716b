"""The page of a service's profile: how multi-agent it is."""

from __future__ import annotations

import asyncio
import time
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

from mast_trace_dashboards.queries import QUERIES
from mast_trace_dashboards.web.stored_pages import StoredPages
from mast_trace_dashboards.web.streaming import streamed
from mast_trace_lab.feedback import words as experiment_words
from mast_trace_lab.teams import words as profile_words
from mast_trace_lab.teams.gap import LEAST
from mast_trace_lab.teams.profile import (
    MOST_RUNS,
    ServiceProfile,
    left_out,
    service_profile,
)
from mast_trace_lab.teams.variants import COLUMNS, team_variants

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.templating import Jinja2Templates

    from mast_trace_collector.storage import Store

FRESH_SECONDS = 60.0
"""Time for which a measured profile is shown, even if new runs arrive: measuring takes seconds."""
_KEPT: Final = 32
_VERSIONS: Final = 20


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
