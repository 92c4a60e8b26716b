"""Pages of each project, on a store that is limited to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from mast_trace_collector.rights import Right
from mast_trace_dashboards.web.per_project import PerProject
from mast_trace_dashboards.web.visitor import visitor_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.templating import Jinja2Templates

    from mast_trace_collector.storage import Store

    Endpoint = Callable[[Request], Awaitable[Response]]

Its = TypeVar("Its")


@dataclass(frozen=True)
class Web:
    """The parts that pages are made of.

    Attributes:
        store: of all projects.
        templates: of the pages.
        idle: seconds after which a run without a root counts as finished.
    """

    store: Store
    templates: Jinja2Templates
    idle: float

    def views(self, make: Callable[[Store, Jinja2Templates], Its]) -> Views[Its]:
        """Return the pages of each project.

        Args:
            make: makes the object that has the handlers, on the store of a project.
        """
        return Views(self.store, lambda its: make(its, self.templates))


class Views(Generic[Its]):
    """Routes each request to the pages of its visitor's project.

    Args:
        store: of all projects.
        make: makes the object that has the handlers, on the store of a project.
    """

    def __init__(self, store: Store, make: Callable[[Store], Its]) -> None:
        self._pages = PerProject(store, make)

    def page(self, handler: Callable[[Its], Endpoint], right: Right = Right.READ) -> Endpoint:
        """Return the handler of a page, for visitors who have the right to it.

        Args:
            handler: returns the handler of a project's pages.
            right: to demand.
        """

        async def answer(request: Request) -> Response:
            visitor = visitor_of(request)
            visitor.demand(right)
            project = visitor.project
            if project is None:
                # A visitor who sees all projects may select one; an empty name selects all.
                project = request.query_params.get("project") or None
            return await handler(self._pages.of(project))(request)

        return answer
