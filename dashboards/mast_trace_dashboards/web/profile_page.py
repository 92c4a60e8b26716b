"""The page of a service's profile: how multi-agent it is."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING, Any, Final

from mast_trace_dashboards import profile_words
from mast_trace_dashboards.queries import QUERIES
from mast_trace_dashboards.team_profile import MOST_RUNS, ServiceProfile, service_profile

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mast_trace_collector.storage import Store

_KEPT: Final = 32
_VERSIONS: Final = 20


class ProfilePage:
    """Profiles of the services of a store; one is measured at a time, and again only after new runs.

    Args:
        store: one project's, if only that may be seen.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._measuring = Lock()
        self._kept: dict[tuple[str, str], tuple[object, ServiceProfile]] = {}

    def values(self, query: Mapping[str, str]) -> dict[str, Any]:
        """Return the variables of the template; the profile is measured while the page is sent."""
        counts = QUERIES["filter_values"].run(self._store)
        services = [row["Value"] for row in counts if row["Filter"] == "service"]
        service = query.get("service", "") or next(iter(services), "")
        version = query.get("version", "")
        versions = QUERIES["teams_by_version"].run(self._store, services=[service], limit=_VERSIONS)
        return {
            "services": services,
            "service": service,
            "version": version,
            "versions": versions if service else [],
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
            if kept is not None and kept[0] == state:
                return kept[1]
            found = service_profile(self._store, service, version=version)
            if len(self._kept) >= _KEPT:
                self._kept.clear()
            self._kept[service, version] = (state, found)
            return found
