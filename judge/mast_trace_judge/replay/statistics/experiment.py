"""The experiment of `mast-trace confirm`: it asks for replays one after the other and is told their results."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from mast_trace_judge.replay.arms import Arm
from mast_trace_judge.replay.statistics.concluding import conclude
from mast_trace_judge.replay.statistics.limits import Limits, ResultMismatch, Trial
from mast_trace_judge.replay.statistics.location import Location, likely
from mast_trace_judge.replay.statistics.plan import Plan

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from mast_trace_judge.replay.arms import ArmResult, Fix
    from mast_trace_judge.replay.confirmation import Confirmation
    from mast_trace_judge.replay.points import Point
    from mast_trace_judge.replay.statistics.comparison import Comparison


class Experiment:
    """An ask/tell experiment without input or output.

    It is deterministic: the same arguments and results ask for the same replays. A stopped experiment
    goes on after the stored results were told in their order.

    Attributes:
        plan: everything that is fixed before the first replay.
        results: results so far.
        comparisons: tested fixes so far.
    """

    def __init__(
        self,
        points: Sequence[Point],
        *,
        prior: Mapping[int, float],
        sources: Mapping[int, Sequence[Fix]],
        limits: Limits | None = None,
        seed: int = 0,
        not_isolated: str = "",
        spent: int = 0,
        plan_id: str = "",
    ) -> None:
        """Plan it.

        Args:
            points: the run's model answers in order of completion.
            prior: the judge's probabilities by step; may be empty.
            sources: fixes by step, in the order in which they are tried; steps without one are never
                tested.
            limits: sizes and budget.
            seed: decides which replay of a pair comes first.
            not_isolated: the reason why replays are not comparable, such as state outside the process
                without a reset; nothing is asked then.
            spent: contrasts that were planned for the same run by other plans before.
            plan_id: id of the plan, for the conclusion.
        """
        self.plan = Plan(tuple(points), dict(prior), dict(sources), limits or Limits(), spent)
        self.not_isolated = not_isolated
        self.plan_id = plan_id
        self.results: list[tuple[Trial, ArmResult]] = []
        self.comparisons: list[Comparison] = []
        self.counts: dict[int, tuple[int, int]] = {}
        self._seed = seed
        self._queue: list[Trial] = []
        self._steps = iter(()) if not_isolated or not points else self._all()
        self._pair: dict[str, ArmResult] = {}

    def ask(self) -> Trial | None:
        """Return the replay that comes next; None at the end or where the budget does not allow it.

        Asked again without a result, it returns the same.
        """
        waiting = self.waiting()
        if not waiting:
            return None
        limits, trial = self.plan.limits, waiting[0]
        if limits.max_calls is not None and self.calls + trial.calls > limits.max_calls:
            return None
        if limits.max_cost_usd is not None and self.cost >= limits.max_cost_usd:
            return None
        return trial

    def waiting(self) -> tuple[Trial, ...]:
        """Return the replays that come next whatever their results are: they may run together."""
        while not self._queue:
            batch = next(self._steps, None)
            if batch is None:
                break
            self._queue.extend(batch)
        return tuple(self._queue)

    def tell(self, result: ArmResult) -> None:
        """Take the result of the replay that comes next.

        Raises:
            ResultMismatch: the result is of another arm, phase or pair, or nothing is asked for.
        """
        waiting = self.waiting()
        if not waiting:
            raise ResultMismatch("the experiment asks for no replay")
        trial = waiting[0]
        asked, told = trial.arm, result.arm
        if (asked.operator, asked.step, asked.fix, trial.phase, trial.pair) != (
            *(told.operator, told.step, told.fix),
            *(result.phase, result.pair),
        ):
            raise ResultMismatch(
                f"replay {len(self.results)} of the experiment is {asked.operator} at step {asked.step} "
                f"({trial.phase}, pair {trial.pair}); told was {told.operator} at step {told.step} "
                f"({result.phase}, pair {result.pair})"
            )
        self._queue.pop(0)
        self.results.append((trial, result))

    @property
    def calls(self) -> int:
        """Live model calls so far."""
        return sum(result.live_calls for _, result in self.results)

    @property
    def cost(self) -> float:
        """Known cost of live calls so far, in dollars."""
        return sum(result.cost_usd or 0.0 for _, result in self.results)

    def location(self) -> Location:
        """Return the posterior of the location."""
        return Location(self.plan.location, self.counts)

    def conclusion(self) -> Confirmation:
        """Return what the results so far have shown."""
        return conclude(self)

    def expected_calls(self) -> int:
        """Return an estimate of the live model calls from here to the end."""
        length, limits = self.plan.length, self.plan.limits
        screening = sum(1 for trial, _ in self.results if trial.phase in {"start", "screening"})
        pairs = sum(1 for trial, _ in self.results if trial.phase == "pairs")
        start = max(0, limits.start_runs - screening) * length
        search = max(0, min(limits.screening_runs, 24) - max(screening, limits.start_runs))
        proof = max(0, min(limits.pair_runs, 20) - pairs)
        found = start + (search + proof) * length // 2
        return found if limits.max_calls is None else min(found, limits.max_calls - self.calls)

    def _all(self) -> Iterator[tuple[Trial, ...]]:
        limits = self.plan.limits
        for count, operator in ((limits.verifications, "verify"), (limits.scores, "score")):
            if count:
                yield (Trial(Arm(operator), operator),) * count
                if not self._fails(operator):
                    return
        yield from self._measure(-1, limits.start_runs, "start")
        while (position := self._next_position()) is not None:
            yield from self._measure(position, limits.batch, "screening")
        yield from self._compare()

    def _fails(self, phase: str) -> bool:
        found = [result.success for trial, result in self.results if trial.phase == phase]
        return all(each is False for each in found)

    def _calls(self, position: int) -> int:
        return self.plan.length - 1 - position

    def _measure(self, position: int, runs: int, phase: str) -> Iterator[tuple[Trial, ...]]:
        trial = Trial(self.plan.keep(position), phase, calls=self._calls(position))
        yield (trial,) * runs
        for _, result in self.results[-runs:]:
            self._count(position, result)

    def _count(self, position: int, result: ArmResult) -> None:
        if result.success is not None:
            successes, runs = self.counts.get(position, (0, 0))
            self.counts[position] = (successes + result.success, runs + 1)

    def _next_position(self) -> int | None:
        limits, length = self.plan.limits, self.plan.length
        run = sum(trial.phase in {"start", "screening"} for trial, _ in self.results)
        if run + limits.batch > limits.screening_runs:
            return None
        location = self.location()
        if location.kinds.systematic >= 0.95 or max(location.origins) >= 0.97:
            return None
        worth = {
            each: location.information(each) / (self._calls(each) + 0.5 * length)
            for each in range(-1, length)
        }
        best = max(worth, key=lambda each: worth[each])
        return best if location.information(best) > 0.004 else None

    def _scores(self) -> dict[int, float]:
        location = self.location()
        weights = self.plan.location.weights
        return {
            each: location.origins[each] + location.kinds.systematic * weights[each]
            for each in self.plan.fixes
        }

    def _next_candidate(self, tested: set[int]) -> int | None:
        scores = {each: value for each, value in self._scores().items() if each not in tested}
        if len(tested) >= self.plan.limits.steps or not scores:
            return None
        members = likely(scores)[: self.plan.limits.steps - len(tested)]
        top = members[0][1] if members else 0.0
        near = [each for each, value in members if value >= 0.3 * top]
        return min(near, default=None)

    def _compare(self) -> Iterator[tuple[Trial, ...]]:
        tested: set[int] = set()
        while (position := self._next_candidate(tested)) is not None:
            tested.add(position)
            for step, fix in self.plan.fixes[position]:
                comparison = self.plan.comparison(position, step, fix)
                self.comparisons.append(comparison)
                yield from self._pairs(comparison)
                if comparison.state == "confirmed":
                    return

    def _pairs(self, comparison: Comparison) -> Iterator[tuple[Trial, ...]]:
        limits = self.plan.limits
        while comparison.state == "open":
            run = sum(trial.phase == "pairs" for trial, _ in self.results)
            if run + 2 > limits.pair_runs:
                return
            number = run // 2
            calls = self._calls(comparison.position)
            trials = [
                Trial(comparison.fix, "pairs", number, calls),
                Trial(comparison.keep, "pairs", number, calls),
            ]
            if random.Random(f"{self._seed}:{number}").random() < 0.5:  # noqa: S311
                trials.reverse()
            yield tuple(trials)
            told = {trial.arm: result for trial, result in self.results[-2:]}
            comparison.add(told[comparison.fix], told[comparison.keep])
            self._count(comparison.position, told[comparison.keep])
            if comparison.source == "resample":
                self._count(comparison.position - 1, told[comparison.fix])
