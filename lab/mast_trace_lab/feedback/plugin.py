"""The plugin of lessons and experiments."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mast_trace_dashboards.plugins import Plugin

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from starlette.routing import Route

    from mast_trace_dashboards.grafana.panels import Panel
    from mast_trace_dashboards.queries.query import Query
    from mast_trace_dashboards.web.views import Web


class FeedbackPlugin(Plugin):
    """The pages on experiments, and `GET /lessons`."""

    name = "feedback"
    templates = "mast_trace_lab.feedback"

    def pages(self, web: Web) -> Sequence[Route]:
        """Return the pages on experiments, and the address at which programs ask for lessons."""
        from starlette.routing import Route

        from mast_trace_lab.feedback.pages import ExperimentPages, Lessons

        views = web.views(ExperimentPages)
        return (
            Route("/experiments", views.page(lambda its: its.listed)),
            Route("/experiments/{name:path}", views.page(lambda its: its.one)),
            *Lessons(web.store).routes,
        )

    def links(self) -> Sequence[tuple[str, str]]:
        """Return the list of experiments."""
        return (("Experiments", "/experiments"),)

    def queries(self) -> Iterable[Query]:
        """Return `experiment_arms`."""
        from mast_trace_lab.feedback import queries as experiments

        return (experiments.EXPERIMENT_ARMS,)

    def panels(self) -> Mapping[str, Sequence[Sequence[Panel]]]:
        """Return the tables of experiments, for the dashboard of failure modes."""
        from mast_trace_lab.feedback.queries import EXPERIMENTS

        return {"mast-modes": EXPERIMENTS}
