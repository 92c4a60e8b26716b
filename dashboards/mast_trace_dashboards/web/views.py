"""Pages of each project, on a store that shows nothing else."""

from __future__ import annotations

import time
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING

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
    """A project's store and pages, and when somebody looked at them."""

    store: Store
    pages: Pages
    used: float = 0.0


class Views:
    """Hands each request to the pages of what its visitor may see.

    The pages do not know whose they are: the store that they read leaves out all other projects.

    Args:
        store: of all projects.
        templates: of the pages.
    """

    def __init__(self, store: Store, templates: Jinja2Templates) -> None:
        self._store = store
        self._templates = templates
        self._all = Pages(store, templates)
        # The one that was looked at last comes last.
        self._of_project: OrderedDict[str, _ProjectPages] = OrderedDict()

    def page(self, name: str, right: Right = Right.READ) -> Endpoint:
        """Return the handler of a page, for visitors who have the right to it."""

        async def answer(request: Request) -> Response:
            visitor = visitor_of(request)
            visitor.demand(right)
            project = visitor.project
            if project is None:
                # Whoever sees all may look at one; an empty name means all.
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
            shown = _ProjectPages(store, Pages(store, self._templates))
        shown.used = time.monotonic()
        self._of_project[project] = shown
        return shown.pages

    def _close_idle(self) -> None:
        """Close connections of projects that nobody looks at: each takes half a MiB and more."""
        while self._of_project:
            longest = next(iter(self._of_project.values()))
            idle = time.monotonic() - longest.used
            if idle < _IDLE_SECONDS and len(self._of_project) < _MOST_PROJECTS:
                return
            self._of_project.popitem(last=False)
            longest.store.close()
