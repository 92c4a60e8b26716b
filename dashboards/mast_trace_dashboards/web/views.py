"""Pages of each project, on a store that is limited to it."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING

from mast_trace_collector.config import DEFAULT_RUN_IDLE
from mast_trace_collector.rights import Right
from mast_trace_dashboards.web.pages import Pages
from mast_trace_dashboards.web.per_project import PerProject
from mast_trace_dashboards.web.visitor import visitor_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.templating import Jinja2Templates

    from mast_trace_collector.storage import Store

    Endpoint = Callable[[Request], Awaitable[Response]]


class Views:
    """Routes each request to the pages of its visitor's project.

    Args:
        store: of all projects.
        templates: of the pages.
        idle: seconds after which a run without a root counts as finished.
    """

    def __init__(
        self, store: Store, templates: Jinja2Templates, *, idle: float = DEFAULT_RUN_IDLE
    ) -> None:
        self._pages = PerProject(store, lambda its: Pages(its, templates, idle=idle))

    def page(self, name: str, right: Right = Right.READ) -> Endpoint:
        """Return the handler of a page, for visitors who have the right to it.

        Args:
            name: of a method of `Pages`; a dot stands before one of its attributes.
            right: to demand.
        """

        async def answer(request: Request) -> Response:
            visitor = visitor_of(request)
            visitor.demand(right)
            project = visitor.project
            if project is None:
                # A visitor who sees all projects may select one; an empty name selects all.
                project = request.query_params.get("project") or None
            handler: Endpoint = attrgetter(name)(self._pages.of(project))
            return await handler(request)

        return answer
