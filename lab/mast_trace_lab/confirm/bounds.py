"""Calls and dollars that a replay may take, which are reserved before it starts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from mast_trace.exceptions import ConfigurationError
from mast_trace_judge.llm.budget import Tokens
from mast_trace_lab.program.isolation import recorded_models

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mast_trace.trajectory import Trajectory
    from mast_trace_judge.arms import ArmResult
    from mast_trace_judge.llm.budget import Price
    from mast_trace_lab.confirm.statistics import ReplayTrial
    from mast_trace_lab.program.setup import Budget

_TIMES_MEAN: Final = 4
_MORE_TOKENS: Final = 2000
_MORE_CALLS: Final = 6


@dataclass(frozen=True)
class CallCost:
    """Cost of one live call in US dollars.

    Attributes:
        mean: of the recorded calls.
        most: assumed of each call in advance: that of four times the mean tokens of a recorded call and
            2,000 tokens more, at the highest of the prices.
    """

    mean: float
    most: float


def call_cost(recorded: Trajectory, prices: Mapping[str, Price]) -> CallCost | None:
    """Return the cost of a live call of a run's program; None if a recorded model has no price."""
    models = recorded_models(recorded)
    if not models or any(model not in prices for model in models):
        return None
    calls = sum(call.kind == "model" for call in recorded.invocations)
    mean = Tokens(recorded.input_tokens // calls, 0, recorded.output_tokens // calls)
    most = Tokens(
        _TIMES_MEAN * mean.input + _MORE_TOKENS, 0, _TIMES_MEAN * mean.output + _MORE_TOKENS
    )
    # Any of the models may be the one that is asked; a stronger one has the highest price.
    return CallCost(
        max(prices[model].of(mean) for model in models),
        max(price.of(most) for price in prices.values()),
    )


def capped_call_cost(recorded: Trajectory, prices: Mapping[str, Price]) -> CallCost:
    """Return the cost of a live call where dollars are limited.

    Raises:
        ConfigurationError: a recorded model has no price.
    """
    cost = call_cost(recorded, prices)
    if cost is None:
        models = ", ".join(sorted(recorded_models(recorded) - prices.keys())) or "the run's model"
        raise ConfigurationError(
            f"a limit in dollars needs the price of {models}: "
            "--price MODEL=INPUT,OUTPUT in US dollars per million tokens"
        )
    return cost


def most_calls(trial: ReplayTrial) -> int:
    """Return the live calls after which a replay is ended: some more than expected, none without any."""
    expected = max(trial.calls, trial.longest)
    return 2 * expected + _MORE_CALLS if trial.calls else 0


def cost_of(result: ArmResult, cost: CallCost | None) -> float:
    """Return the cost of a replay in US dollars; where it is unknown, the most that it may have been."""
    if result.cost_usd is not None:
        return result.cost_usd
    return result.live_calls * cost.most if cost else 0.0


@dataclass(frozen=True)
class ReplayAllowance:
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

    def allow(self, trial: ReplayTrial, running: Sequence[ReplayAllowance] = ()) -> ReplayAllowance:
        """Return what a replay may take beside those that are running.

        Raises:
            Exhausted: less is left than it is expected to take.
        """
        budget, most = self.budget, most_calls(trial)
        if trial.phase == "score":
            return ReplayAllowance(0, 0.0)
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
        return ReplayAllowance(most, most * self.cost.most if self.cost else None)
