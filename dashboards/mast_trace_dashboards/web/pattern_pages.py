"""The pages on patterns: the list, one pattern, and what people say of it."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse, Response

from mast_trace.exceptions import ConfigurationError
from mast_trace.taxonomy import FAILURE_MODES
from mast_trace_dashboards import found_pattern
from mast_trace_dashboards.found_pattern import FoundPattern, cost_of, find_pattern, set_state
from mast_trace_dashboards.queries import QUERIES
from mast_trace_dashboards.queries.query import side_by_side
from mast_trace_dashboards.run_names import NotFound, parse_time
from mast_trace_dashboards.web.counts import StoredCounts
from mast_trace_dashboards.web.filters import read_form
from mast_trace_dashboards.web.views import StoredPages
from mast_trace_dashboards.web.visitor import visitor_of

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.templating import Jinja2Templates

    from mast_trace_collector.storage import Store


_WARNING: Final = 3.0
"""Least evidence against a version that is shown, as in the alerts."""
_STATES: Final = ("open", "acknowledged", "resolved", "reopened")
_MOST: Final = 100
_OF_SERVICE: Final = 15
_STORED: Final = """
SELECT (SELECT (count(), max(JudgedAt)) FROM mast_pattern_runs) AS Runs,
    (SELECT (count(), max(ChangedAt)) FROM mast_pattern_states) AS States,
    (SELECT (count(), max(NamedAt)) FROM mast_pattern_names) AS Names,
    (SELECT (count(), max(ConfirmedAt)) FROM mast_confirmations) AS Confirmations"""


class PatternPages(StoredPages):
    """The handlers of these pages.

    Args:
        store: the database; one project's, if only that may be seen.
        templates: of the pages.
    """

    def __init__(self, store: Store, templates: Jinja2Templates) -> None:
        super().__init__(store, templates)
        self._counts: StoredCounts[tuple[list[Any], ...]] = StoredCounts(store, _STORED)

    async def patterns(self, request: Request) -> Response:
        """Answer with the patterns, the actions that separate runs, and the versions that got worse."""
        asked = request.query_params
        since, state = asked.get("since", ""), asked.get("state", "")
        service, mode = asked.get("service", ""), asked.get("mode", "")
        if state not in {"", *_STATES}:
            raise HTTPException(400, "Choose a state that the page offers.")
        try:
            given: dict[str, Any] = {"since": parse_time(since)} if since else {}
        except ConfigurationError as error:
            raise HTTPException(400, str(error)) from error
        if service:
            given["services"] = [service]
        chosen = {"states": [state] if state else [], "modes": [mode] if mode else []}
        counted = await asyncio.to_thread(
            self._counts.of, (since, state, service, mode), partial(self._listed, given, chosen)
        )
        rows, separating, versions, problems, counts = counted.made
        return self._html(
            request,
            "patterns.html",
            rows=rows[:_MOST],
            more=len(rows) > _MOST,
            separating=separating,
            versions=versions,
            counts=counts,
            problems=found_pattern.naming_problems(problems, rows[:_MOST]),
            counted=counted,
            chosen={"since": since, "state": state, "service": service, "mode": mode},
            states=_STATES,
            modes=FAILURE_MODES,
            words=found_pattern,
        )

    def _listed(self, given: dict[str, Any], chosen: dict[str, Any]) -> tuple[list[Any], ...]:
        patterns, separating, worse, naming, modes = side_by_side(
            partial(QUERIES["patterns"].run, self._store, **given, **chosen, limit=_MOST + 1),
            partial(QUERIES["separating_actions"].run, self._store, **given, limit=_OF_SERVICE),
            partial(QUERIES["version_regressions"].run, self._store, **given, limit=_OF_SERVICE),
            partial(QUERIES["pattern_naming"].run, self._store),
            partial(QUERIES["mode_counts"].run, self._store, **given),
        )
        warned = [row for row in worse if row["Evidence"] >= _WARNING]
        return patterns, separating, warned, naming, modes

    async def pattern(self, request: Request) -> Response:
        """Answer with one pattern, its runs and the commands that go on from it."""
        found = await asyncio.to_thread(self._pattern, request.path_params["pattern"])
        cost = await asyncio.to_thread(cost_of, self._store, found)
        return self._html(
            request,
            "pattern.html",
            row=found.row,
            title=found_pattern.title(found.row),
            said=found_pattern.said_of(found, cost),
        )

    async def pattern_state(self, request: Request) -> Response:
        """Store that a pattern is acknowledged, resolved or open again."""
        name = request.path_params["pattern"]
        found = await asyncio.to_thread(self._pattern, name)
        form = await read_form(request)
        author = visitor_of(request).user or form["author"][0]
        try:
            await asyncio.to_thread(
                set_state,
                self._store,
                found.row["PatternId"],
                form["state"][0],
                author,
                version=form["version"][0] if form["state"][0] == "resolved" else "",
                note=form["note"][0],
                project=found.row["Project"],
            )
            self._counts.forget()
        except ConfigurationError as error:
            raise HTTPException(400, str(error)) from error
        asked = f"?{request.url.query}" if request.url.query else ""
        return RedirectResponse(f"/patterns/{found.row['PatternId']}{asked}", 303)

    def _pattern(self, name: str) -> FoundPattern:
        try:
            return find_pattern(self._store, name)
        except NotFound as error:
            raise HTTPException(404, f"There is no pattern {name}.") from error
        except ConfigurationError as error:
            raise HTTPException(400, str(error)) from error
