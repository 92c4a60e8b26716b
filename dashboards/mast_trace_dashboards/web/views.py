"""Pages of each project, on a store that is limited to it."""

from __future__ import annotations

import time
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mast_trace_collector.config import DEFAULT_RUN_IDLE
from mast_trace_collector.rights import Right
from mast_trace_collector.storage.project_store import store_of_project
from mast_trace_dashboards.web.pages import Pages
from mast_trace_dashboards.web.visitor import visitor_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.templating import Jinja2Templates

    from mast_trace_collector.storage import Store

    Endpoint = Callable[[Request], Awaitable[Response]]

_MOST_PROJECTS = 256
_IDLE_SECONDS = 600.0


@dataclass
class _ProjectPages:
    """A project's store and pages, with the time of their last use."""

    store: Store
    pages: Pages
    used: float = 0.0


class Views:
    """Routes each request to the pages of its visitor's project.

    The pages need no check of the project: their store leaves out all other projects.

    Args:
        store: of all projects.
        templates: of the pages.
        idle: seconds after which a run without a root counts as finished.
    """

    def __init__(
        self, store: Store, templates: Jinja2Templates, *, idle: float = DEFAULT_RUN_IDLE
    ) -> None:
        self._store = store
        self._idle = idle
        self._templates = templates
        self._all = Pages(store, templates, idle=idle)
        # Ordered by last use.
        self._of_project: OrderedDict[str, _ProjectPages] = OrderedDict()

    def page(self, name: str, right: Right = Right.READ) -> Endpoint:
        """Return the handler of a page, for visitors who have the right to it."""

        async def answer(request: Request) -> Response:
            visitor = visitor_of(request)
            visitor.demand(right)
            project = visitor.project
            if project is None:
                # A visitor who sees all projects may select one; an empty name selects all.
                project = request.query_params.get("project") or None
            handler: Endpoint = getattr(self._pages(project), name)
            return await handler(request)

        return answer

    def _pages(self, project: str | None) -> Pages:
        if project is None:
            return self._all
        shown = self._of_project.pop(project, None)
        if shown is None:
            self._close_idle()
            store = store_of_project(self._store, project)
            shown = _ProjectPages(store, Pages(store, self._templates, idle=self._idle))
        shown.used = time.monotonic()
        self._of_project[project] = shown
        return shown.pages

    def _close_idle(self) -> None:
        """Close connections of projects that nobody uses: each takes half a MiB and more."""
        while self._of_project:
            longest = next(iter(self._of_project.values()))
            idle = time.monotonic() - longest.used
            if idle < _IDLE_SECONDS and len(self._of_project) < _MOST_PROJECTS:
                return
            self._of_project.popitem(last=False)
            longest.store.close()
