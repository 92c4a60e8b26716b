"""The pages on experiments: the list with counts by arm, and one with what its runs allow to say."""

from __future__ import annotations

import asyncio
from itertools import groupby
from typing import TYPE_CHECKING

from starlette.exceptions import HTTPException

from mast_trace.exceptions import ConfigurationError
from mast_trace_dashboards.web.views import StoredPages
from mast_trace_lab.feedback import words as experiment_words
from mast_trace_lab.feedback.experiment import look_at
from mast_trace_lab.feedback.queries import EXPERIMENT_ARMS
from mast_trace_lab.feedback.store import projects_with

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from mast_trace_lab.feedback.experiment import Look


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
        cells = [experiment_words.contrast_cells(each) for each in look.conclusion.contrasts]
        return self._html(
            request, "experiment.html", look=look, words=experiment_words, cells=cells
        )

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
