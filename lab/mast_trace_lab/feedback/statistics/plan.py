"""The plan of an experiment: what is fixed before the first outcome is seen."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import Final

from mast_trace.experiment.assignment import ARMS, FEEDBACK, HASH, NONE, PAIRS, PLACEBO
from mast_trace_lab.feedback.statistics.betting import FRACTIONS

_MIXTURE_COST: Final = 0.8
"""Cost of the mean over stakes and centres, in units of log e: it bets on others as well."""

_POWER: Final = 0.8
"""Probability to find the difference."""

THRESHOLD: Final = 20.0
"""The e-value from which one contrast counts as decided: it is reached falsely in at most 5 %."""


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

    Raises:
        ValueError: the rates are not between 0 and 1, or there is no difference to find.
    """
    other = baseline + effect
    if not 0 < baseline < 1 or not 0 < other < 1 or not effect:
        raise ValueError(
            f"a success rate of {baseline:g} and one of {other:g} cannot be planned: both lie "
            "between 0 and 1, and differ"
        )
    z = NormalDist().inv_cdf(_POWER)
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


@dataclass(frozen=True)
class ExperimentPlan:
    """An experiment's plan.

    Attributes:
        name: of the experiment.
        arms: as the program gives them to `mast_trace.assign`; the first is the control.
        design: ``hash`` or ``pairs``.
        repeats: runs of a task in an arm that count; a task counts when they have outcomes.
        baseline: expected success rate of the control; None where none was given.
        effect: difference to be found.
        workflow: name of the workflow whose runs teach the frozen lessons; empty for all.
        version: of the frozen lessons; empty if there are none.
        late: number of runs that had been recorded before the plan was made.
    """

    name: str
    arms: tuple[str, ...] = ARMS
    design: str = HASH
    repeats: int = 1
    baseline: float | None = None
    effect: float = 0.1
    workflow: str = ""
    version: str = field(default="")
    late: int = 0

    def __post_init__(self) -> None:
        """Refuse plans that cannot be carried out.

        Raises:
            ValueError: fewer than two arms, an arm twice, an unknown design or a wrong number.
        """
        if len(self.arms) < 2 or len(set(self.arms)) != len(self.arms) or not all(self.arms):
            raise ValueError("an experiment needs two or more different arms")
        if self.design not in (HASH, PAIRS):
            raise ValueError(f"a design is {HASH!r} or {PAIRS!r}, not {self.design!r}")
        if not 1 <= self.repeats <= 1000:
            raise ValueError("the runs of a task in an arm are 1 to 1000")
        if self.baseline is not None:
            self.size()

    @property
    def paired(self) -> bool:
        """True if each task goes through all arms."""
        return self.design == PAIRS

    @property
    def contrasts(self) -> tuple[tuple[str, str], ...]:
        """Pairs of treatment and control, in the order in which they may be decided."""
        if set(self.arms) == set(ARMS):
            return (FEEDBACK, PLACEBO), (FEEDBACK, NONE)
        return tuple((arm, self.arms[0]) for arm in self.arms[1:])

    @property
    def in_order(self) -> bool:
        """True if a contrast is decided only after those before it; otherwise they share the level."""
        return set(self.arms) == set(ARMS)

    @property
    def threshold(self) -> float:
        """The e-value from which a contrast counts as decided."""
        return THRESHOLD if self.in_order else THRESHOLD * len(self.contrasts)

    def size(self) -> Size:
        """Return the number of tasks that the plan needs; a baseline of .6 is taken without one.

        Raises:
            ValueError: baseline and effect are no two rates between 0 and 1.
        """
        return planned_size(
            0.6 if self.baseline is None else self.baseline,
            self.effect,
            arms=len(self.arms),
            pairs=self.paired,
            repeats=self.repeats,
            threshold=self.threshold,
        )
