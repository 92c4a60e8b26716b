"""The budget of one experiment: what its replays have taken, and what the next one may take."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mast_trace_lab.confirm.bounds import cost_of, most_calls

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mast_trace_judge.arms import ArmResult
    from mast_trace_lab.confirm.bounds import CallCost
    from mast_trace_lab.confirm.statistics import Trial
    from mast_trace_lab.program.setup import Budget


@dataclass(frozen=True)
class Allowance:
    """The limits of one replay.

    Attributes:
        calls: live model calls; the replay is ended before the next one.
        cost_usd: US dollars that are reserved for them; None if a price is unknown.
    """

    calls: int
    cost_usd: float | None


class Exhausted(Exception):
    """The budget does not allow the next replay; the text says which limit.

    Attributes:
        of_day: whether it is that of the day, so that replays go on tomorrow.
    """

    def __init__(self, text: str, *, of_day: bool = False) -> None:
        super().__init__(text)
        self.of_day = of_day


class Account:
    """Adds up what the replays of an experiment have taken and may still take.

    Args:
        budget: the limits.
        cost: of a live call; None if a price is unknown and dollars are not limited.
    """

    def __init__(self, budget: Budget, cost: CallCost | None) -> None:
        self.budget = budget
        self.cost = cost
        self.runs = 0
        self.calls = 0
        self.cost_usd = 0.0

    def add(self, results: Sequence[ArmResult]) -> None:
        """Add replays that have ended. Scores start no program and count as no replay."""
        for result in results:
            self.runs += result.phase != "score"
            self.calls += result.live_calls
            self.cost_usd += cost_of(result, self.cost)

    def allow(self, trial: Trial, running: Sequence[Allowance] = ()) -> Allowance:
        """Return what a replay may take beside those that are running.

        Raises:
            Exhausted: less is left than it is expected to take.
        """
        budget, most = self.budget, most_calls(trial)
        if trial.phase == "score":
            return Allowance(0, 0.0)
        if budget.max_runs is not None and self.runs + len(running) >= budget.max_runs:
            raise Exhausted(f"{self.runs} of {budget.max_runs} replays are used (--max-runs)")
        if budget.max_calls is not None:
            used = self.calls + sum(each.calls for each in running)
            most = min(most, budget.max_calls - used)
            if most < trial.calls:
                raise Exhausted(
                    f"{used} of {budget.max_calls} live calls are used, and the next replay may take "
                    f"{trial.calls} (--max-calls)"
                )
        if budget.max_cost_usd is not None and self.cost is not None and trial.calls:
            spent = self.cost_usd + sum(each.cost_usd or 0.0 for each in running)
            most = min(most, int((budget.max_cost_usd - spent) / self.cost.most))
            if most < trial.calls:
                raise Exhausted(
                    f"{spent:.4f} of {budget.max_cost_usd:.4f} USD are used, and the next replay may "
                    f"cost {trial.calls * self.cost.most:.4f} (--max-cost)"
                )
        return Allowance(most, most * self.cost.most if self.cost else None)
