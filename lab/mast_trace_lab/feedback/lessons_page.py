"""`GET /lessons`: the lessons of earlier runs for a program, in the project of its key."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from starlette.responses import JSONResponse
from starlette.routing import Route

from mast_trace.exceptions import StorageError
from mast_trace_dashboards.web.views import PerProject
from mast_trace_dashboards.web.visitor import visitor_of
from mast_trace_lab.feedback.answering import MOST_CHARACTERS, MOST_LESSONS, Wanted, answer

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from mast_trace_collector.storage import Store

logger = logging.getLogger(__name__)

PATH: Final = "/lessons"
_PATIENCE_SECONDS: Final = 1.0
"""Programs wait two seconds for an answer."""
_LONGEST: Final = 500
"""Characters of a parameter that are read."""


class Lessons:
    """Answers with lessons as JSON; visitors need the right to read.

    Args:
        store: of all projects.
    """

    def __init__(self, store: Store) -> None:
        self._stores = PerProject(store, lambda its: its)
        self.routes = [Route(PATH, self.lessons, methods=["GET"])]

    async def lessons(self, request: Request) -> Response:
        """Answer with the lessons that fit; an empty text says that there are none."""
        project = visitor_of(request).project
        if project is None:
            project = request.query_params.get("project") or None
        given = request.query_params
        texts = {
            name: given.get(name, "")[:_LONGEST]
            for name in ("run", "workflow", "agent", "experiment", "key", "task")
        }
        wanted = Wanted(
            last=_whole(given.get("last"), MOST_LESSONS),
            budget=_whole(given.get("budget"), 600, MOST_CHARACTERS),
            **texts,
        )
        store = self._stores.of(project)
        try:
            found = await asyncio.to_thread(
                answer, store, wanted, project=project, seconds=_PATIENCE_SECONDS
            )
        except StorageError as error:
            logger.warning("lessons could not be read: %s", error)
            return JSONResponse({"detail": "The database does not answer."}, 503)
        return JSONResponse(found.to_json())


def _whole(text: str | None, default: int, most: int | None = None) -> int:
    if text is None or not text.isascii() or not text.isdecimal() or len(text) > 9:
        return default
    return min(int(text), default if most is None else most)
