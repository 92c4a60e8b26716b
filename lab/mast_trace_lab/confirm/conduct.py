"""Puts a prepared experiment, its budget and the runner of its replays together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mast_trace.exceptions import ConfigurationError
from mast_trace_lab.confirm.bounds import call_cost, capped_call_cost
from mast_trace_lab.confirm.confirm import Confirming
from mast_trace_lab.confirm.execution import executing

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mast_trace.trajectory import Trajectory
    from mast_trace_collector.storage import Store
    from mast_trace_judge.llm.budget import Price
    from mast_trace_lab.confirm.bounds import CallCost
    from mast_trace_lab.confirm.conducting import Progress
    from mast_trace_lab.confirm.daily import DailyBudget
    from mast_trace_lab.confirm.preparation import Prepared
    from mast_trace_lab.program.setup import Budget, Setup


def confirming(
    store: Store,
    prepared: Prepared,
    setup: Setup,
    budget: Budget,
    *,
    prices: Mapping[str, Price] | None = None,
    day: DailyBudget | None = None,
    jobs: int = 1,
    changed: Callable[[Progress], None] = lambda _progress: None,
) -> Confirming:
    """Return the confirmation of a prepared experiment, not yet resumed.

    Args:
        store: the database.
        prepared: the experiment.
        setup: of its replays.
        budget: of the experiment.
        prices: of models, by name.
        day: the budget of the day over all runs; its dollars need prices.
        jobs: replays that run at the same time, each in processes of its own.
        changed: called after each change of the state.

    Raises:
        ConfigurationError: dollars are limited and a price is unknown, or replays that run at the same
            time would share the state that ``reset`` restores.
    """
    known = prices or {}
    capped = day is not None and day.limits_cost
    return Confirming(
        store,
        prepared.plan,
        prepared.experiment,
        prepared.recorded,
        setup,
        executing(prepared.recorded, setup, known),
        budget,
        cost=check_limits(prepared.recorded, setup, budget, known, jobs=jobs, capped=capped),
        day=day,
        jobs=jobs,
        changed=changed,
    )


def check_limits(
    recorded: Trajectory,
    setup: Setup,
    budget: Budget,
    prices: Mapping[str, Price],
    *,
    jobs: int = 1,
    capped: bool = False,
) -> CallCost | None:
    """Return the cost of a live call, as far as known, if the limits can be held.

    Args:
        recorded: the run.
        setup: of the replays.
        budget: of the experiment.
        prices: of models, by name.
        jobs: replays that run at the same time.
        capped: whether dollars are limited besides by the budget.

    Raises:
        ConfigurationError: dollars are limited and a price is unknown, or replays that run at the same
            time would share the state that ``reset`` restores.
    """
    if jobs > 1 and setup.reset:
        raise ConfigurationError(
            "--jobs and --reset exclude each other: replays that run at the same time would change "
            "the state that the others begin with"
        )
    if budget.max_cost_usd is not None or capped:
        return capped_call_cost(recorded, prices)
    return call_cost(recorded, prices)
