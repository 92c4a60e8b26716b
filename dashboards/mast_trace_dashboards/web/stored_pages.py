"""The base of handlers that read a store and answer with a page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.templating import Jinja2Templates

    from mast_trace_collector.storage import Store


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
