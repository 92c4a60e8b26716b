"""Facts of an experiment that are fixed before its first replay: points, fixes, prior, thresholds."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Final

from mast_trace_judge.arms import Arm, Fix
from mast_trace_judge.confirmation import FurtherFix
from mast_trace_judge.replay.statistics.comparison import Comparison
from mast_trace_judge.replay.statistics.limits import Limits
from mast_trace_judge.replay.statistics.location_prior import LocationPrior, origin_weights

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mast_trace_judge.arms import Operator
    from mast_trace_judge.confirmation import Confirmation, Contrast
    from mast_trace_judge.replay.points import Point

_OPERATORS: Final[dict[str, Operator]] = {"resample": "resample", "stronger model": "model"}
_LEVEL: Final = 20
"""Inverse of the chance of a false proof that is tolerated over a run's lifetime: 5 %."""


@dataclass(frozen=True)
class Plan:
    """The plan of an experiment.

    Attributes:
        points: decision points in order of completion.
        prior: the judge's probabilities by step.
        sources: fixes by step, in the order in which they are tried.
        limits: sizes.
        earlier: conclusion of the plans for the same run before this one.
    """

    points: tuple[Point, ...]
    prior: Mapping[int, float]
    sources: Mapping[int, Sequence[Fix]]
    limits: Limits = field(default_factory=Limits)
    earlier: Confirmation | None = None

    @property
    def length(self) -> int:
        """Number of decisions."""
        return len(self.points)

    def position(self, step: int) -> int:
        """Return the position of the decision that led to a step: -1 if there is none.

        That is the decision whose first step it is, and else the one with the last step before it.
        """
        before = [(each.step, index) for index, each in enumerate(self.points) if each.step <= step]
        return max(before, default=(0, -1))[1]

    @cached_property
    def candidates(self) -> dict[int, float]:
        """The judge's probabilities by position."""
        found: dict[int, float] = {}
        for step, probability in self.prior.items():
            position = self.position(step)
            if position >= 0 and probability > 0:
                found[position] = found.get(position, 0.0) + probability
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

    def joined(self, position: int) -> Fix | None:
        """Return the fix of the answer at a position that a joint fix takes, which needs two positions.

        It is the first text, and without one the stronger model. Asking the same model again is none:
        where single fixes never succeed it has failed already.
        """
        step = self.points[position].step
        found = [fix for each, fix in self.fixes.get(position, ()) if each == step]
        texts = [fix for fix in found if fix.text]
        stronger = [fix for fix in found if fix.source == "stronger model"]
        return next(iter(texts + stronger), None)

    @cached_property
    def joins(self) -> bool:
        """True if a joint fix is planned."""
        return self.limits.joint and sum(self.joined(each) is not None for each in self.fixes) > 1

    @cached_property
    def planned(self) -> int:
        """Contrasts that this plan may test: those of the steps with most fixes, and a joint fix."""
        sizes = sorted(map(len, self.fixes.values()), reverse=True)[: self.limits.steps]
        return sum(sizes) + self.joins

    @property
    def spent(self) -> int:
        """Contrasts of earlier plans."""
        return self.earlier.planned_contrasts if self.earlier else 0

    @property
    def threshold(self) -> float:
        """The e-value that proves a fix.

        A first plan of k contrasts takes 20 (k + 1). The one contrast too many is kept for later
        plans: with M contrasts before, the threshold is 20 (M + 1) (M + k + 1). The inverse values of
        all contrasts of all plans then add up to less than 1 / 20, however often a run is tried again.
        """
        return float(_LEVEL * (self.spent + 1) * (self.spent + self.planned + 1))

    def keep(self, position: int) -> Arm:
        """Return the arm that keeps everything up to and including a position."""
        return Arm("start") if position < 0 else Arm("keep", self.points[position].step)

    def comparison(self, position: int, step: int, fix: Fix) -> Comparison:
        """Return a new comparison of a fix at a step that belongs to a position."""
        on_answer = step == self.points[position].step
        operator = _OPERATORS.get(fix.source, "fix" if on_answer else "result")
        return self._comparison(position, Arm(operator, step, fix), fix.source, fix.text)

    def joint_comparison(self, positions: Sequence[int]) -> Comparison:
        """Return a comparison of the fixes of several positions together; see `joined`.

        It continues the evidence of an earlier plan for the same fixes.
        """
        fixes = [(self.points[each].step, self.joined(each)) for each in sorted(positions)]
        (step, first), *others = [(step, fix) for step, fix in fixes if fix is not None]
        arm = Arm(_OPERATORS.get(first.source, "fix"), step, first, also=tuple(others))
        found = self._comparison(min(positions), arm, first.source, first.text)
        key = found.contrast().key
        before = [each for each in self._before if each.key == key]
        return found.after(before[0]) if before else found

    def earlier_comparisons(self) -> list[Comparison]:
        """Return the comparisons of earlier plans, which go on with their evidence."""
        found = []
        for each in self._before:
            position = self.position(each.step)
            for step, fix in self.fixes.get(position, ()):
                made = self.comparison(position, step, fix)
                if made.contrast().key == each.key:
                    found.append(made.after(each))
        return found

    @property
    def _before(self) -> Sequence[Contrast]:
        return self.earlier.contrasts if self.earlier else ()

    def _further(self, step: int, fix: Fix) -> FurtherFix:
        agent = self.points[self.position(step)].agent
        return FurtherFix(step=step, agent=agent, source=fix.source, fix_text=fix.text)

    def _comparison(self, position: int, arm: Arm, source: str, text: str) -> Comparison:
        return Comparison(
            position=position,
            agent=self.points[position].agent,
            further=tuple(self._further(step, fix) for step, fix in arm.also),
            fix=arm,
            keep=self.keep(position),
            source=source,
            text=text,
            threshold=self.threshold,
            most=self.limits.pairs,
        )
