"""Facts of an experiment that are fixed before its first replay: points, fixes, prior, thresholds."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Final

from mast_trace_judge.replay.arms import Arm
from mast_trace_judge.replay.statistics.comparison import Comparison
from mast_trace_judge.replay.statistics.limits import Limits
from mast_trace_judge.replay.statistics.location_prior import LocationPrior, origin_weights

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mast_trace_judge.replay.arms import Fix, Operator
    from mast_trace_judge.replay.points import Point

_OPERATORS: Final[dict[str, Operator]] = {"resample": "resample", "stronger model": "model"}
_LEVEL = 20
"""Inverse of the chance of a false confirmation that is tolerated over a run's lifetime: 5 %."""


@dataclass(frozen=True)
class Plan:
    """The plan of an experiment.

    Attributes:
        points: decision points in order of completion.
        prior: the judge's probabilities by step.
        sources: fixes by step, in the order in which they are tried.
        limits: sizes.
        spent: contrasts that were planned for the same run before.
    """

    points: tuple[Point, ...]
    prior: Mapping[int, float]
    sources: Mapping[int, Sequence[Fix]]
    limits: Limits = field(default_factory=Limits)
    spent: int = 0

    @cached_property
    def length(self) -> int:
        """Number of decisions."""
        return len(self.points)

    def position(self, step: int) -> int:
        """Return the position of the decision that led to a step: -1 if there is none.

        That is the decision whose first step it is, and else the one with the last step before it.
        """
        before = [
            (point.step, index) for index, point in enumerate(self.points) if point.step <= step
        ]
        return max(before, default=(0, -1))[1]

    @cached_property
    def candidates(self) -> dict[int, float]:
        """The judge's probabilities by position."""
        found: dict[int, float] = {}
        for step, probability in self.prior.items():
            position = self.position(step)
            found[position] = found.get(position, 0.0) + max(0.0, probability)
        found.pop(-1, None)
        return found

    @cached_property
    def location(self) -> LocationPrior:
        """The prior of origin and point of no return."""
        return LocationPrior(origin_weights(self.length, self.candidates))

    @cached_property
    def fixes(self) -> dict[int, list[tuple[int, Fix]]]:
        """Steps and fixes by position."""
        found: dict[int, list[tuple[int, Fix]]] = {}
        for step in sorted(self.sources):
            position = self.position(step)
            if position >= 0 and self.sources[step]:
                found.setdefault(position, []).extend((step, fix) for fix in self.sources[step])
        return found

    @cached_property
    def planned(self) -> int:
        """Contrasts that may be tested: those of the steps with most fixes, and a joint fix."""
        sizes = sorted(map(len, self.fixes.values()), reverse=True)[: self.limits.steps]
        return sum(sizes) + (len(sizes) > 1)

    @cached_property
    def threshold(self) -> float:
        """The e-value that proves a fix: 20 times the contrasts planned in the run's lifetime."""
        return float(_LEVEL * max(1, self.planned + self.spent))

    def keep(self, position: int) -> Arm:
        """Return the arm that keeps everything up to and including a position."""
        return Arm("start") if position < 0 else Arm("keep", self.points[position].step)

    def comparison(self, position: int, step: int, fix: Fix) -> Comparison:
        """Return a new comparison of a fix at a step that belongs to a position."""
        point = self.points[position]
        operator = _OPERATORS.get(fix.source, "fix" if step == point.step else "result")
        return Comparison(
            step=step,
            position=position,
            agent=point.agent,
            fix=Arm(operator, step, fix),
            keep=self.keep(position),
            source=fix.source,
            text=fix.text,
            threshold=self.threshold,
            most=self.limits.pairs,
        )
