"""The plugin of the measures of a team."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mast_trace_dashboards.plugins import Plugin, Section

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from starlette.routing import Route

    from mast_trace_collector.storage import Store
    from mast_trace_dashboards.plugins import StoreOf
    from mast_trace_dashboards.web.views import Web


class Teams(Plugin):
    """The page `profile` with its first lines above the agents, and the tool `get_profile`."""

    name = "teams"
    templates = "mast_trace_lab.teams"

    def pages(self, web: Web) -> Sequence[Route]:
        """Return the page of a service's profile."""
        from starlette.routing import Route

        from mast_trace_lab.teams.page import ProfilePage

        return (Route("/profile", web.views(ProfilePage).page(lambda its: its.profile)),)

    def sections(self, page: str, store: Store) -> Sequence[Section]:  # noqa: ARG002
        """Return the place for the measures that lead to an action: they are measured while the agents are read."""
        return (Section("_place.html", {}),) if page == "agents" else ()

    def tools(self, store_of: StoreOf) -> Sequence[Callable[..., Any]]:
        """Return `get_profile`."""
        from mast_trace_lab.teams.answers import ProfileTool

        return (ProfileTool(store_of).get_profile,)
