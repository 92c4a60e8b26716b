"""The number of tasks that an experiment needs, before it starts."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING, Final

from mast_trace_lab.feedback.statistics.betting import FRACTIONS

if TYPE_CHECKING:
    from collections.abc import Iterator

_MIXTURE_COST: Final = 0.8
"""Cost of the mean over stakes and centres, in units of log e: it bets on others as well."""


@dataclass(frozen=True)
class Size:
    """Tasks for each arm; in the design ``pairs`` tasks in all.

    Attributes:
        tasks: with these, looked at at any time, the difference is found with the planned power.
        single_look: tasks of an experiment that is looked at once, at its end, two-sided at 5 %.
        runs: runs in all arms together.
    """

    tasks: int
    single_look: int
    runs: int


def planned_size(
    baseline: float,
    effect: float,
    *,
    arms: int = 3,
    pairs: bool = False,
    repeats: int = 1,
    threshold: float = 20.0,
    power: float = 0.8,
) -> Size:
    """Return the size for a difference of success rates.

    The logarithm of the e-value is taken as a random walk with the drift and the variance of the best
    stake; `benchmarks/feedback` compares that with simulations. Runs of one task are taken as
    alike: repeats then save no tasks, and fewer are needed where they differ.

    Args:
        baseline: success rate of the control.
        effect: difference to be found; negative for a treatment that harms.
        arms: number of arms.
        pairs: whether each task is run in all arms.
        repeats: runs of a task in an arm.
        threshold: the e-value from which a difference counts as decided.
        power: probability to find the difference.

    Raises:
        ValueError: the rates are not between 0 and 1, or there is no difference to find.
    """
    other = baseline + effect
    if not 0 < baseline < 1 or not 0 < other < 1 or not effect:
        raise ValueError(
            f"a success rate of {baseline:g} and one of {other:g} cannot be planned: both lie "
            "between 0 and 1, and differ"
        )
    z = NormalDist().inv_cdf(power)
    best = math.inf
    gains = list(_gains(baseline, other, pairs=pairs))
    if effect < 0:
        gains = [(chance, -gain) for chance, gain in gains]
    wanted = math.log(threshold) + _MIXTURE_COST
    for fraction in FRACTIONS:
        logs = [(chance, math.log1p(fraction * gain)) for chance, gain in gains]
        drift = sum(chance * each for chance, each in logs)
        if drift <= 0:
            continue
        variance = sum(chance * (each - drift) ** 2 for chance, each in logs)
        root = (z * math.sqrt(variance) + math.sqrt(z * z * variance + 4 * drift * wanted)) / 2
        best = min(best, (root / drift) ** 2)
    tasks = math.ceil(best if pairs else best / 2)
    both = baseline * (1 - baseline) + other * (1 - other)
    single = math.ceil((NormalDist().inv_cdf(0.975) + z) ** 2 * both / effect**2)
    return Size(tasks, single, tasks * arms * repeats)


def _gains(baseline: float, other: float, *, pairs: bool) -> Iterator[tuple[float, float]]:
    """Yield the scaled bets of a task with their chances."""
    if pairs:
        for x, chance_x in ((1, other), (0, 1 - other)):
            for y, chance_y in ((1, baseline), (0, 1 - baseline)):
                yield chance_x * chance_y, float(x - y)
        return
    centre = (baseline + other) / 2
    bound = max(centre, 1 - centre)
    for sign, rate in ((1, other), (-1, baseline)):
        for outcome, chance in ((1, rate), (0, 1 - rate)):
            yield chance / 2, sign * (outcome - centre) / bound
