"""The handlers of the pages on which runs, steps and texts are found."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from starlette.exceptions import HTTPException

from mast_trace_dashboards.step_input import seen_at, why_unknown
from mast_trace_dashboards.web.finding.seen_view import seen_view
from mast_trace_dashboards.web.numbers import whole

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.templating import Jinja2Templates

    from mast_trace_collector.storage import Store
    from mast_trace_dashboards.web.loaded_run import LoadedRun


class FindingPages:
    """The handlers; each queries the database in a thread.

    Args:
        store: the database, of the visitor's project.
        templates: of the pages.
        open_run: looks a run up; raises HTTPException where there is none.
    """

    def __init__(
        self, store: Store, templates: Jinja2Templates, open_run: Callable[[str], LoadedRun]
    ) -> None:
        self._store = store
        self._templates = templates
        self._open = open_run

    async def step_input(self, request: Request) -> Response:
        """Answer with the messages that the agent of a step was shown, as a part of the run page."""
        asked, trace_id = request.path_params["step"], request.path_params["run"]
        values = await asyncio.to_thread(self._seen, trace_id, asked)
        return self._html(request, "_input.html", **values)

    def _seen(self, trace_id: str, asked: str) -> dict[str, Any]:
        opened = self._open(trace_id)
        number = whole(asked)
        if number is None or number >= opened.stored.count:
            raise HTTPException(404, f"The run has no step {asked}.")
        run = opened.stored.read()
        seen = seen_at(run, number)
        if seen is None:
            return {"view": None, "reason": why_unknown(run, number)}
        return {"view": seen_view(seen), "reason": ""}

    def _html(self, request: Request, name: str, **values: Any) -> Response:
        return self._templates.TemplateResponse(request, name, values)
