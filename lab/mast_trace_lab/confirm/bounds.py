"""Calls and dollars that a replay may take, which are reserved before it starts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from mast_trace.exceptions import ConfigurationError
from mast_trace_judge.llm.budget import Tokens
from mast_trace_lab.program.isolation import recorded_models

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mast_trace.trajectory import Trajectory
    from mast_trace_judge.arms import ArmResult
    from mast_trace_judge.llm.budget import Price
    from mast_trace_lab.confirm.statistics import Trial

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


def most_calls(trial: Trial) -> int:
    """Return the live calls after which a replay is ended: some more than expected, none without any."""
    expected = max(trial.calls, trial.longest)
    return 2 * expected + _MORE_CALLS if trial.calls else 0


def cost_of(result: ArmResult, cost: CallCost | None) -> float:
    """Return the cost of a replay in US dollars; where it is unknown, the most that it may have been."""
    if result.cost_usd is not None:
        return result.cost_usd
    return result.live_calls * cost.most if cost else 0.0
