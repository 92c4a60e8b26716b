"""Puts the web view together."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.templating import Jinja2Templates

from mast_trace.exceptions import StorageError
from mast_trace_dashboards.durations import in_words
from mast_trace_dashboards.web.guard import Guard
from mast_trace_dashboards.web.pages import Pages

if TYPE_CHECKING:
    from datetime import datetime

    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import ASGIApp

    from mast_trace_collector.storage import Store

_STATIC = Path(__file__).parent / "static"
_RUN = "/runs/{run:str}"


def web_app(store: Store, token: str = "") -> ASGIApp:
    """Return the web view on a store.

    Args:
        store: where the runs are.
        token: what visitors must know; needed where others than this machine can reach it.
    """
    templates = Jinja2Templates(env=_environment())
    pages = Pages(store, templates)

    async def failed(request: Request, error: Exception) -> Response:
        if isinstance(error, HTTPException):
            status, text = error.status_code, str(error.detail)
        else:
            status, text = 503, f"The database does not answer: {error}"
        values = {"status": status, "text": text}
        return templates.TemplateResponse(request, "error.html", values, status_code=status)

    app = Starlette(
        routes=[
            Route("/", pages.runs),
            Route("/judge", pages.judge),
            Route("/compare", pages.compare),
            Route(_RUN, pages.run),
            Route(f"{_RUN}/steps", pages.steps),
            Route(f"{_RUN}/steps/{{step:int}}", pages.step),
            Route(f"{_RUN}/label", pages.label, methods=["POST"]),
            Route(f"{_RUN}/download.{{kind:str}}", pages.download),
            Mount("/static", StaticFiles(directory=_STATIC)),
        ],
        exception_handlers={HTTPException: failed, StorageError: failed},
    )
    return Guard(app, token)


def _environment() -> Environment:
    made = Environment(
        loader=PackageLoader("mast_trace_dashboards.web"),
        autoescape=select_autoescape(default=True, default_for_string=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(percent=_percent, moment=_moment, seconds=_seconds, visible=_visible)
    return made


# A number and its unit stay on one line.
_SPACE = "\N{NO-BREAK SPACE}"


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.0f}{_SPACE}%"


def _moment(value: datetime | None) -> str:
    return value.strftime("%Y-%m-%d %H:%M:%S") if value else "-"


def _seconds(milliseconds: float) -> str:
    return in_words(milliseconds, space=_SPACE)


# What would reorder or hide the text around it is shown as its code.
_HIDDEN = {
    code: f"<U+{code:04X}>"
    for code in (
        *range(9),
        *range(0x0B, 0x20),
        *range(0x7F, 0xA0),
        *range(0x202A, 0x202F),
        *range(0x2066, 0x206A),
    )
}


def _visible(value: Any) -> str:
    return str(value).translate(_HIDDEN)
