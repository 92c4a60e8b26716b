"""A run as the pages show it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from mast_trace_dashboards.found_run import FoundRun
from mast_trace_dashboards.web.finding.run_costs import RunCosts, run_costs
from mast_trace_dashboards.web.replay_points import ReplayPoints, points_of
from mast_trace_dashboards.web.run_view import Page


@dataclass(frozen=True)
class LoadedRun(FoundRun):
    """A run as the pages show it."""

    @cached_property
    def page(self) -> Page:
        """Its steps; reading a long run takes seconds."""
        answers = self.points.answers
        return Page(
            self.stored,
            self.verdict,
            confirmation=self.confirmation,
            answers=answers,
            spent=self.costs.by_step,
        )

    @cached_property
    def costs(self) -> RunCosts:
        """The cost of its steps and agents."""
        return run_costs(self.stored)

    @cached_property
    def points(self) -> ReplayPoints:
        """The steps from which replays run on."""
        return points_of(self.stored)

    @cached_property
    def places(self) -> dict[str, int]:
        """The step in which each quote of the verdict stands."""
        return self.stored.places_of(self.verdict)

    @property
    def steps(self) -> int | None:
        """The number of steps; None until they are counted."""
        if self.stored.is_ready:
            return self.page.count
        return self.row["Steps"] if self.row["State"] == "judged" else None

    @cached_property
    def task(self) -> str:
        """The task of the run, as far as it is known without reading all spans."""
        return self.page.outline.run.task if self.stored.is_ready else self.stored.task()

    @property
    def version(self) -> str:
        """Changes whenever the page does."""
        row, judged = self.row, self.verdict.judged_at if self.verdict else ""
        proof = self.confirmation
        tested = f"{proof.status} {proof.replays}" if proof else ""
        return f"{row['State']} {row['Outcome']} {row['Spans']} {row['End']} {judged} {tested}"
