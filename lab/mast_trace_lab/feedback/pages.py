"""The pages on experiments, and `GET /lessons`, by which programs ask for the lessons of earlier runs."""

from __future__ import annotations

import asyncio
import logging
from itertools import groupby
from typing import TYPE_CHECKING, Final

from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from mast_trace.exceptions import ConfigurationError, StorageError
from mast_trace_dashboards.web.views import PerProject, StoredPages
from mast_trace_dashboards.web.visitor import visitor_of
from mast_trace_lab.feedback import words as experiment_words
from mast_trace_lab.feedback.answering import MOST_CHARACTERS, MOST_LESSONS, Wanted, answer
from mast_trace_lab.feedback.experiment import Look, look_at
from mast_trace_lab.feedback.queries import EXPERIMENT_ARMS
from mast_trace_lab.feedback.store import projects_with

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.requests import Request

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
        try:
            wanted = Wanted(
                last=min(_whole(given, "last", MOST_LESSONS), MOST_LESSONS),
                budget=min(_whole(given, "budget", 600), MOST_CHARACTERS),
                **texts,
            )
        except ValueError as error:
            return JSONResponse({"detail": str(error)}, 400)
        store = self._stores.of(project)
        try:
            found = await asyncio.to_thread(
                answer, store, wanted, project=project, seconds=_PATIENCE_SECONDS
            )
        except StorageError as error:
            logger.warning("lessons could not be read: %s", error)
            return JSONResponse({"detail": "The database does not answer."}, 503)
        return JSONResponse(found.to_json())


def _whole(given: Mapping[str, str], name: str, default: int) -> int:
    text = given.get(name, str(default))
    if not text.isascii() or not text.isdecimal() or len(text) > 9:
        raise ValueError(
            f"`{name}` is a whole number of at most nine digits, and not {text[:20]!r}."
        )
    return int(text)


class ExperimentPages(StoredPages):
    """The handlers of these pages.

    Reading a page neither counts nor stores a look: intervals and e-values hold at every look all the same.
    """

    async def listed(self, request: Request) -> Response:
        """Answer with the experiments and the counts of their arms."""
        rows = await asyncio.to_thread(EXPERIMENT_ARMS.run, self._store)
        found = [
            (project, name, list(arms))
            for (project, name), arms in groupby(
                rows, key=lambda row: (row["Project"], row["Experiment"])
            )
        ]
        return self._html(request, "experiments.html", experiments=found)

    async def one(self, request: Request) -> Response:
        """Answer with one experiment at a look that is not counted."""
        name = request.path_params["name"]
        asked = request.query_params.get("project")
        look = await asyncio.to_thread(self._look, name, asked)
        said = experiment_words.said_of(look)
        return self._html(request, "experiment.html", look=look, said=said)

    def _look(self, name: str, asked: str | None) -> Look:
        owners = projects_with(self._store, name)
        if not owners:
            raise HTTPException(404, f"There is no experiment {name!r}.")
        if len(owners) > 1 and asked not in owners:
            raise HTTPException(
                400,
                f"The projects {', '.join(map(repr, owners))} have an experiment {name!r}: choose it from the list "
                "of experiments, or add ?project= to the address.",
            )
        try:
            return look_at(self._store, asked if asked in owners else owners[0], name, count=False)
        except ConfigurationError as error:
            raise HTTPException(400, f"{error}.") from error
