"""A run as the commands show it: read from the store as far as it is printed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mast_trace_dashboards.found_run import FoundRun, find_run
from mast_trace_dashboards.run_names import NotFound

if TYPE_CHECKING:
    from mast_trace_collector.storage import Store
    from mast_trace_judge.verdict import Verdict

ALL_OF = 500
"""Number of steps up to which a run is shown whole."""
_FIRST, _LAST = 200, 50
_AROUND = 3
"""Steps before and after one that the verdict names."""
_NAMED = 20
"""Steps of a failure mode that are shown."""


@dataclass(frozen=True)
class RunView(FoundRun):
    """A run as the commands print it; usable while its store is open."""

    @property
    def is_long(self) -> bool:
        """True if counting its steps takes a while, so that not all are shown."""
        return self.stored.is_long

    @property
    def steps_known(self) -> int | None:
        """The number of steps; None where they would have to be counted first."""
        if not self.is_long:
            return self.stored.count
        return self.row["Steps"] if self.row["State"] == "judged" else None

    @property
    def agents(self) -> int:
        """The number of agents, without the user."""
        names: Iterable[str] = self.row["Agents"] if self.is_long else self.stored.outline.agents
        return sum(agent != "user" for agent in names)

    @property
    def task(self) -> str:
        """The task of the run."""
        return self.stored.task() if self.is_long else self.stored.outline.run.task

    def excerpt(self, verdict: Verdict | None) -> Sequence[int]:
        """Return the numbers of the steps to show: all, or both ends and the steps in the verdict."""
        count = self.stored.count
        if count <= ALL_OF:
            return range(count)
        wanted = {*range(_FIRST), *range(count - _LAST, count)}
        named: list[int] = []
        if verdict is not None:
            named += [place.step for place in verdict.look_first]
            named += [verdict.decisive.step] if verdict.decisive else []
            named += [step for mode in verdict.modes for step in mode.steps[:_NAMED]]
        for step in named:
            wanted |= set(range(max(0, step - _AROUND), min(count, step + _AROUND + 1)))
        return sorted(wanted)


def load(
    store: Store, trace_id: str, project: str | None = None, *, idle: float | None = None
) -> RunView:
    """Find one run; see `mast_trace_dashboards.found_run.find_run`.

    Raises:
        NotFound: there is no run with this id.
    """
    found = find_run(store, trace_id, project, idle=idle)
    if found is None:
        raise NotFound(f"there is no run {trace_id}")
    return RunView(**vars(found))
