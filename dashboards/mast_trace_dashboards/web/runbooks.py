"""Pages of runbooks: meaning of an alert, investigation and remedy."""

from __future__ import annotations

import re
from importlib import resources
from typing import TYPE_CHECKING

from markdown_it import MarkdownIt
from markupsafe import Markup
from starlette.exceptions import HTTPException
from starlette.routing import Route

from mast_trace_collector.security import Right
from mast_trace_dashboards.web.visitor import visitor_of

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.templating import Jinja2Templates

_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_TITLE = re.compile(r"#\s+(.+)")
# Markup in a text is escaped, and a page loads no pictures from elsewhere.
_MARKDOWN = MarkdownIt("commonmark", {"html": False}).enable("table").disable("image")


class Runbooks:
    """Serves the Markdown files of the package's folder ``runbooks``.

    Args:
        templates: of the pages.
        folder: of the files; the package's own if None.
    """

    def __init__(self, templates: Jinja2Templates, folder: Traversable | None = None) -> None:
        self._templates = templates
        self._folder = folder or resources.files("mast_trace_dashboards.alerts.runbooks")
        self.routes = [
            Route("/runbooks", self.index),
            Route("/runbooks/", self.index),
            Route("/runbooks/{name:str}", self.show),
        ]

    async def index(self, request: Request) -> Response:
        """Answer with the list of runbooks."""
        visitor_of(request).demand(Right.READ)
        found = {name: title_of(text) or name for name, text in self.texts().items()}
        return self._templates.TemplateResponse(request, "runbooks.html", {"runbooks": found})

    async def show(self, request: Request) -> Response:
        """Answer with one runbook."""
        visitor_of(request).demand(Right.READ)
        name = request.path_params["name"]
        text = self.texts().get(name)
        if text is None:
            raise HTTPException(404, f"There is no runbook {name}.")
        values = {"title": title_of(text) or name, "body": rendered(text)}
        return self._templates.TemplateResponse(request, "runbook.html", values)

    def texts(self) -> dict[str, str]:
        """Return the texts by their names, in alphabetical order."""
        if not self._folder.is_dir():
            return {}
        files = {each.name.removesuffix(".md"): each for each in self._folder.iterdir()}
        return {
            name: files[name].read_text(encoding="utf-8")
            for name in sorted(files)
            if _NAME.fullmatch(name) and files[name].name == f"{name}.md"
        }


def rendered(text: str) -> Markup:
    """Return Markdown as HTML; everything that is no Markdown is escaped."""
    return Markup(_MARKDOWN.render(text))  # noqa: S704  # made by the renderer, which escapes


def title_of(text: str) -> str:
    """Return the first heading; empty if there is none."""
    found = next((match for line in text.splitlines() if (match := _TITLE.fullmatch(line))), None)
    return found[1].strip() if found else ""
