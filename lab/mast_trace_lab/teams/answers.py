"""The MCP server's answer on the profile of a service: how multi-agent it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final

from mcp.server.mcpserver import Context  # noqa: TC002  # the server reads the annotations
from pydantic import Field

from mast_trace_dashboards.mcp_server.answers import fenced, page
from mast_trace_dashboards.mcp_server.tools import Since  # noqa: TC001  # as above
from mast_trace_dashboards.printable import clip
from mast_trace_dashboards.run_names import NotFound, parse_time, service_names
from mast_trace_lab.teams import words
from mast_trace_lab.teams.profile import left_out, service_profile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mast_trace_collector.storage import Store
    from mast_trace_dashboards.plugins import StoreOf
    from mast_trace_judge.multi_agent.measure import Measure

MOST_RUNS: Final = 100
"""Runs that an answer is made of: fewer than of the command, because an assistant waits for it."""
_NAMED: Final = 20
_DETAIL: Final = 300
_NAME: Final = 100


def profile_of(store: Store, service: str, version: str, since: str) -> Any:
    """Return the measures of a service's newest runs, and the reasons of those that are silent.

    Raises:
        NotFound: the service has no such finished runs, or there is no such service.
        ConfigurationError: the time cannot be read.
    """
    begun = parse_time(since) if since else None
    found = service_profile(store, service, version=version, since=begun, most=MOST_RUNS)
    profile = found.profile
    if not profile.runs and not found.unread:
        raise NotFound(_nothing(store, service))
    agents, _ = page(
        [clip(words.presence_words(each), _DETAIL) for each in profile.presences], _NAMED
    )
    return {
        "service": clip(service, _NAME),
        "version": clip(version, _NAME),
        "runs": {
            "read": profile.runs,
            "of_several_agents": profile.teams,
            "without_texts": profile.without_content,
            "too_long_to_be_read": found.unread,
            "older_ones_not_read": found.more,
            "left_out_by_retention_of_all_versions": left_out(store, service, since=begun),
        },
        "measured": [_told(each) for each in profile.measures if each.value is not None],
        "not_measured": [
            {"measure": each.question.title, "runs": each.runs, "reason": each.silent}
            for each in profile.measures
            if each.value is None
        ],
        "success_with_and_without_an_agent": agents,
        "more_agents": len(profile.presences) - len(agents),
        **({"what_these_do_not_say": words.HINT} if agents else {}),
    }


def _told(measure: Measure) -> dict[str, Any]:
    asked = measure.question
    told: dict[str, Any] = {
        "measure": asked.title,
        "asks": asked.asks,
        "value": words.value_words(measure),
        "interval_95": words.interval_words(measure),
        "runs": measure.runs,
    }
    if measure.null is not None:
        told.update(by_chance=words.null_words(measure), chance_is=asked.null)
    if measure.detail:
        told["details"] = [clip(each, _DETAIL) for each in measure.detail]
    return {**told, "does_not_say": asked.leaves_open}


def _nothing(store: Store, service: str) -> str:
    """Return why there is no profile; names of services are recorded texts, and stand in a fence."""
    names = service_names(store)
    if service in names:
        return (
            "the service has no finished runs of that version and time; `list_runs` lists its runs"
        )
    if not names:
        return "there are no runs with a service's name yet"
    return (
        "there is no such service; the query `filter_values` names all (see `list_queries`).\n"
        f"{fenced(_most_frequent(names))}"
    )


def _most_frequent(names: Sequence[str]) -> dict[str, Any]:
    shown = [clip(name, _NAME) for name in names[:_NAMED]]
    return {"services": shown, "more": len(names) - len(shown)}


class ProfileTool:
    """The tool that measures a service.

    Args:
        store_of: returns the store that the sender of a request may see.
    """

    def __init__(self, store_of: StoreOf) -> None:
        self._store_of = store_of

    def get_profile(
        self,
        ctx: Context[Any, Any],
        service: Annotated[str, Field(description="Name of the service.")],
        version: Annotated[str, Field(description="Only runs of this version.")] = "",
        since: Since = "",
    ) -> Any:
        """Measure on the newest 100 runs how multi-agent a service is: who uses whose words, what talk costs.

        `by_chance` is what a team without that trait reaches: compare it with the interval. Below 20 runs nothing
        is measured, and there is no total score. It takes seconds.
        """
        return profile_of(self._store_of(ctx), service, version, since)
