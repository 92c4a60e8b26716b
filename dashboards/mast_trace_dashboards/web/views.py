"""Pages of each project, on a store that is limited to it; a page whose first part is sent before the rest is known."""

from __future__ import annotations

import logging
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from starlette.responses import StreamingResponse

from mast_trace.exceptions import StorageError
from mast_trace_collector.security import Right
from mast_trace_collector.storage.project_store import store_of_project
from mast_trace_dashboards.web.visitor import visitor_of

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.templating import Jinja2Templates

    from mast_trace_collector.storage import Store

    Endpoint = Callable[[Request], Awaitable[Response]]

    from starlette.requests import Request
    from starlette.responses import Response

_MOST_PROJECTS = 256
_IDLE_SECONDS = 600.0

Made = TypeVar("Made")

Its = TypeVar("Its")


@dataclass
class _OfProject(Generic[Made]):
    """A project's store and what was made on it, with the time of their last use."""

    store: Store
    made: Made
    used: float = 0.0


class PerProject(Generic[Made]):
    """Makes one object for each project that is asked for, and one for all projects together.

    The object needs no check of the project: its store leaves out all other projects. Projects that
    nobody uses are closed, because each connection takes half a MiB and more.

    Args:
        store: of all projects; the caller closes it.
        make: makes an object on a store.
    """

    def __init__(self, store: Store, make: Callable[[Store], Made]) -> None:
        self._store = store
        self._make = make
        self._all = make(store)
        self._lock = Lock()
        # Ordered by last use.
        self._of_project: OrderedDict[str, _OfProject[Made]] = OrderedDict()

    def of(self, project: str | None) -> Made:
        """Return the object of a project; that of all projects for None."""
        if project is None:
            return self._all
        with self._lock:
            found = self._of_project.pop(project, None)
            if found is None:
                self._close_idle()
                store = store_of_project(self._store, project)
                found = _OfProject(store, self._make(store))
            found.used = time.monotonic()
            self._of_project[project] = found
            return found.made

    def _close_idle(self) -> None:
        while self._of_project:
            longest = next(iter(self._of_project.values()))
            idle = time.monotonic() - longest.used
            if idle < _IDLE_SECONDS and len(self._of_project) < _MOST_PROJECTS:
                return
            self._of_project.popitem(last=False)
            longest.store.close()


class StoredPages:
    """Handlers of pages; each queries the database in a thread.

    Args:
        store: the database; one project's, if only that may be seen.
        templates: of the pages.
    """

    def __init__(self, store: Store, templates: Jinja2Templates) -> None:
        self._store = store
        self._templates = templates

    def _html(self, request: Request, name: str, **values: Any) -> Response:
        return self._templates.TemplateResponse(request, name, values)


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


def chosen_project(request: Request) -> str | None:
    """Return the project that a visitor who sees all has selected; None for all.

    An empty name selects all, and of one run's pages those of the project without a name.
    """
    named = request.query_params.get("project")
    return named if "run" in request.path_params else named or None


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
                project = chosen_project(request)
            return await handler(self._pages.of(project))(request)

        return answer


_LOG = logging.getLogger(__name__)
SO_FAR = "<!-- so far -->"
"""In a template: everything before this mark is sent at once."""
_AT_ONCE = 32 * 1024
_BROKEN = """<p class="empty" role="alert">The rest of this page could not be read: the database does
not answer. Load the page again to try it anew.</p>"""


def streamed(
    templates: Jinja2Templates, request: Request, name: str, values: dict[str, Any]
) -> StreamingResponse:
    """Answer with a template that is rendered in a thread while it is sent."""
    context = {"request": request, **values}
    for more in templates.context_processors:
        context.update(more(request))
    template = templates.get_template(name)
    return StreamingResponse(_pieces(template.generate(context)), media_type="text/html")


def in_blocks(pieces: Iterable[str]) -> Iterator[str]:
    """Yield joined texts, the first one at once: each yield costs a switch of threads."""
    block: list[str] = []
    size = _AT_ONCE
    for piece in pieces:
        block.append(piece)
        size += len(piece)
        if size >= _AT_ONCE:
            yield "".join(block)
            block, size = [], 0
    yield "".join(block)


def _pieces(written: Iterator[str]) -> Iterator[str]:
    pieces: list[str] = []
    size = 0
    try:
        for piece in written:
            pieces.append(piece)
            size += len(piece)
            if size >= _AT_ONCE or SO_FAR in piece:
                yield "".join(pieces)
                pieces, size = [], 0
    except StorageError:
        _LOG.exception("a page broke off")
        pieces.append(_BROKEN)
    yield "".join(pieces)
