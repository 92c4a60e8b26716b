"""Facts of an experiment that are fixed before its first replay: sizes, points, fixes, prior, thresholds."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from operator import itemgetter
from typing import TYPE_CHECKING, Final

from mast_trace_judge.arms import Fix, Operator, ReplayArm
from mast_trace_judge.confirmation import Confirmation, Contrast, FurtherFix
from mast_trace_lab.confirm.statistics.cells import SINGLE
from mast_trace_lab.confirm.statistics.comparison import Comparison

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mast_trace_judge.decision_points import DecisionPoint


@dataclass(frozen=True)
class ExperimentLimits:
    """Sizes of an experiment.

    `max_calls`, `max_cost_usd` and `pair_runs` only end an experiment: it may be continued with larger
    ones. The others are part of its plan: stored results fit only the same values.

    Attributes:
        verifications: replays that change nothing, before all others.
        scores: times that the oracle is asked about the recorded answer; 0 leaves that out.
        start_runs: replays of the whole program with which the search begins.
        screening_runs: replays for the search, those of the start included.
        search_calls: live model calls after which the search ends; None for no limit.
        batch: replays that are planned together, so that they may run at the same time.
        pair_runs: replays for the proof, two a pair. A joint fix, and fixes of a program that fails from
            the start, may use besides what the search has left.
        pairs: pairs for one fix at one step.
        steps: steps at which fixes are tried.
        joint: tries the fixes of the examined steps together where no single one ever helped.
        max_calls: live model calls in all; None for no limit.
        max_cost_usd: cost of live calls in all; None for no limit.
    """

    verifications: int = 1
    scores: int = 5
    start_runs: int = 4
    screening_runs: int = 64
    search_calls: int | None = None
    batch: int = 2
    pair_runs: int = 40
    pairs: int = 20
    steps: int = 3
    joint: bool = True
    max_calls: int | None = None
    max_cost_usd: float | None = None

    def __post_init__(self) -> None:
        """Refuse sizes with which an experiment would never end.

        Raises:
            ValueError: a size is negative, or a batch has no replay.
        """
        sizes = (self.verifications, self.scores, self.start_runs, self.screening_runs)
        if min(*sizes, self.pair_runs, self.pairs, self.steps) < 0 or self.batch < 1:
            raise ValueError(
                f"sizes of an experiment are not negative, and a batch has a replay: {self}"
            )


_ROUNDING: Final = 1e-14

UNIFORM: Final = 0.35
"""Share of the prior that does not follow the judge."""

_OPERATORS: Final[dict[str, Operator]] = {"resample": "resample", "stronger model": "model"}
Part = tuple[int, Fix]
"""A step and its fix."""
_LEVEL: Final = 20
"""Inverse of the chance of a false proof that is tolerated over a run's lifetime: 5 %."""


def origin_weights(length: int, candidates: Mapping[int, float]) -> tuple[float, ...]:
    """Return the prior of the origin by position.

    Args:
        length: number of decisions.
        candidates: the judge's probabilities by position; those that are no positive numbers are left out.
    """
    given = [candidates.get(each, 0.0) for each in range(length)]
    weights = [each if 0 < each < math.inf else 0.0 for each in given]
    total = sum(weights)
    if not total:
        return tuple(1 / length for _ in range(length))
    return tuple((1 - UNIFORM) * each / total + UNIFORM / length for each in weights)


class LocationPrior:
    """Joint prior of origin and point of no return, summed over ranges of positions.

    The point of no return is the origin itself with weight `SINGLE`, and otherwise each later position
    alike.
    """

    def __init__(self, weights: Sequence[float]) -> None:
        """Make the prior from the weights of the origin."""
        self.length = len(weights)
        self.weights = tuple(weights)
        last = self.length - 1
        single = [each * SINGLE for each in weights[:-1]] + [*weights[-1:]]
        # The weight of each later point of no return, by origin.
        later = [(1 - SINGLE) * each / (last - origin) for origin, each in enumerate(weights[:-1])]
        later.append(0.0)
        self._single = [0.0, *accumulate(single)]
        self._later = [0.0, *accumulate(later)]
        self._moments = [0.0, *accumulate(origin * each for origin, each in enumerate(later))]

    def single(self, after: int, until: int) -> float:
        """Return the weight of an origin in (after, until] that is the point of no return too."""
        return self._single[until + 1] - self._single[after + 1]

    def repairable(self, origin: tuple[int, int], point: tuple[int, int]) -> float:
        """Return the weight of an origin and a later point, each in a range (after, until]."""
        (low, high), (left, right) = origin, point
        inside = max(low, min(high, left))
        found = (right - left) * (self._later[inside + 1] - self._later[low + 1])
        until, after = max(inside, min(high, right)) + 1, inside + 1
        found += right * (self._later[until] - self._later[after])
        found -= self._moments[until] - self._moments[after]
        return found if found > _ROUNDING else 0.0


@dataclass(frozen=True)
class Plan:
    """The plan of an experiment.

    Attributes:
        points: decision points in order of completion.
        prior: the judge's probabilities by step.
        sources: fixes by step; those of one source in the order in which they are tried.
        limits: sizes.
        earlier: conclusion of the plans for the same run before this one.
        agents: agents of tools' calls by step.
    """

    points: tuple[DecisionPoint, ...]
    prior: Mapping[int, float]
    sources: Mapping[int, Sequence[Fix]]
    limits: ExperimentLimits = field(default_factory=ExperimentLimits)
    earlier: Confirmation | None = None
    agents: Mapping[int, str] = field(default_factory=dict)

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
        """Steps and fixes by position, in the order in which they are tried: by source, then by step.

        At -1 are those of tools that were called before any model.
        """
        found: dict[int, list[tuple[int, Fix]]] = {}
        for step in sorted(self.sources):
            position = self.position(step)
            given = [fix for fix in self.sources[step] if position >= 0 or fix.result]
            if given:
                found.setdefault(position, []).extend((step, fix) for fix in given)
        for parts in found.values():  # an answer and its tools have steps of their own
            parts.sort(key=lambda part: part[1].rank)
        return found

    def joined(self, position: int) -> tuple[Part, ...]:
        """Return steps and fixes at a position that a joint fix takes, which needs two of them.

        That is the first text for the answer; without one the first result of each of its tools, and without
        those the stronger model. Asking the same model again is none: where single fixes never succeed it
        has failed already.
        """
        answers: list[Part] = []
        asked: list[Part] = []
        results: dict[int, Fix] = {}
        for step, fix in self.fixes.get(position, ()):
            if fix.result:
                results.setdefault(step, fix)
            elif position >= 0 and step == self.points[position].step:
                answers += [(step, fix)] * bool(fix.text)
                asked += [(step, fix)] * (fix.source == "stronger model")
        return tuple(answers[:1] or sorted(results.items(), key=itemgetter(0)) or asked[:1])

    def agent(self, step: int, fix: Fix | None = None) -> str:
        """Return the agent of a step: of a tool's result, and of a step that is no answer, its own."""
        position = self.position(step)
        own = self.agents.get(step)
        if position < 0:
            return own or ""
        point = self.points[position]
        is_answer = step == point.step and not (fix is not None and fix.result)
        return point.agent if is_answer or own is None else own

    @cached_property
    def joins(self) -> bool:
        """True if a joint fix is planned."""
        return self.limits.joint and sum(len(self.joined(each)) for each in self.fixes) > 1

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

    def keep(self, position: int) -> ReplayArm:
        """Return the arm that keeps everything up to and including a position."""
        return ReplayArm("start") if position < 0 else ReplayArm("keep", self.points[position].step)

    def comparison(self, position: int, step: int, fix: Fix) -> Comparison:
        """Return a new comparison of a fix at a step that belongs to a position."""
        # Plans of earlier versions do not mark the results of tools.
        is_result = fix.result or step != self.points[position].step
        operator = _OPERATORS.get(fix.source, "result" if is_result else "fix")
        return self._comparison(position, ReplayArm(operator, step, fix), fix.source, fix.text)

    def joint_comparison(self, parts: Sequence[Part]) -> Comparison:
        """Return a comparison of several fixes together, in the order of the positions; see `joined`.

        It continues the evidence of an earlier plan for the same fixes.
        """
        (step, first), *others = parts
        operator = _OPERATORS.get(first.source, "result" if first.result else "fix")
        arm = ReplayArm(operator, step, first, also=tuple(others))
        position = min(self.position(each) for each, _ in parts)
        found = self._comparison(position, arm, first.source, first.text)
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
        return FurtherFix(
            step=step,
            agent=self.agent(step, fix),
            source=fix.source,
            fix_text=fix.text,
            result=fix.result,
        )

    def _comparison(self, position: int, arm: ReplayArm, source: str, text: str) -> Comparison:
        return Comparison(
            position=position,
            agent=self.agent(arm.step, arm.fix),
            further=tuple(self._further(step, fix) for step, fix in arm.also),
            fix=arm,
            keep=self.keep(position),
            source=source,
            text=text,
            threshold=self.threshold,
            most=self.limits.pairs,
        )
