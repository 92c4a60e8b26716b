"""The success rate of an arm with an interval that knows that runs of one task are alike."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING, Final

from mast_trace_judge.intervals import wilson

if TYPE_CHECKING:
    from collections.abc import Sequence

_LEVEL: Final = 0.95


@dataclass(frozen=True)
class Rate:
    """A success rate.

    Attributes:
        value: mean over tasks of the share of successes; None without tasks.
        low: lower end of the 95 % interval.
        high: upper end.
    """

    value: float | None
    low: float
    high: float


def clustered_rate(tasks: Sequence[tuple[int, int]]) -> Rate:
    """Return the success rate over tasks with a 95 % interval for a single look.

    The tasks are the independent units. Wilson's interval is taken at the number of independent runs that
    would have the variance of the tasks' means, with the quantile of Student's t; where all means
    are equal that number is the number of tasks.

    Args:
        tasks: successes and outcomes of each task; tasks without an outcome are left out.
    """
    means = [successes / runs for successes, runs in tasks if runs]
    if not means:
        return Rate(None, 0.0, 1.0)
    count, runs = len(means), sum(runs for _, runs in tasks)
    rate = sum(means) / count
    effective = float(count)
    if count > 1:
        variance = sum((mean - rate) ** 2 for mean in means) / (count - 1) / count
        if variance > 0:
            # Between the runs, all independent, and the tasks, all runs of which are alike.
            effective = min(float(runs), max(rate * (1 - rate) / variance, 1.0))
    low, high = wilson(rate * effective, effective, _t_quantile(0.5 + _LEVEL / 2, count - 1))
    return Rate(rate, low, high)


def _t_quantile(probability: float, freedom: int) -> float:
    """Return a quantile of Student's t, by the expansion of Abramowitz and Stegun (26.7.5).

    Below three degrees of freedom it is too small; then that of three is taken, and an interval
    of so few tasks is wide in any case.
    """
    z = NormalDist().inv_cdf(probability)
    n = max(3, freedom)
    return (
        z
        + (z**3 + z) / (4 * n)
        + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * n**2)
        + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * n**3)
    )
