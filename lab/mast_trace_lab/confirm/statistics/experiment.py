"""The experiment of `mast-trace confirm`: it asks for one replay after the other and takes the results."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mast_trace_judge.arms import ArmResult, Fix, ReplayArm
from mast_trace_lab.confirm.statistics.evidence import SEARCH, ExperimentState
from mast_trace_lab.confirm.statistics.findings import conclude
from mast_trace_lab.confirm.statistics.plan import ExperimentLimits, Plan
from mast_trace_lab.confirm.statistics.proof import prove
from mast_trace_lab.confirm.statistics.search import measure
from mast_trace_lab.program.budget import ReplayTrial, ResultMismatch

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from mast_trace_judge.confirmation import Confirmation
    from mast_trace_judge.decision_points import DecisionPoint

_USUAL_SEARCH, _USUAL_PAIRS = 40, 24
"""Replays that search and proof usually take, for the estimate."""


class Experiment:
    """An ask/tell experiment without input or output.

    It is deterministic: the same arguments and results ask for the same replays. A stopped experiment
    goes on after the stored results were told in their order.

    Attributes:
        evidence: plan, results and tested fixes.
    """

    def __init__(
        self,
        points: Sequence[DecisionPoint],
        *,
        prior: Mapping[int, float],
        sources: Mapping[int, Sequence[Fix]],
        limits: ExperimentLimits | None = None,
        seed: int = 0,
        not_isolated: str = "",
        earlier: Confirmation | None = None,
        plan_id: str = "",
        agents: Mapping[int, str] | None = None,
    ) -> None:
        """Plan it.

        Args:
            points: the run's model answers in order of completion.
            prior: the judge's probabilities by step; may be empty.
            sources: fixes by step; those of a decision and its tools are tried in the order of their
                origins (`FixSource`). Steps without one are never tested.
            limits: sizes and budget.
            seed: decides which replay of a pair comes first.
            not_isolated: the reason why replays are not comparable, such as state outside the process
                without a reset, or another model; nothing is asked then.
            earlier: conclusion of another plan for the same run, whose evidence is kept and whose
                contrasts count. A plan that is continued needs its results told instead.
            plan_id: id of the plan, for the conclusion.
            agents: agents of tools' calls by step, for the conclusion.
        """
        sizes = limits or ExperimentLimits()
        plan = Plan(tuple(points), dict(prior), dict(sources), sizes, earlier, dict(agents or {}))
        self.evidence = ExperimentState(plan)
        self._not_isolated = not_isolated
        self._plan_id = plan_id
        self._queue: list[ReplayTrial] = []
        self._steps = iter(()) if not_isolated or not plan.points else self._all(seed)

    def ask(self) -> ReplayTrial | None:
        """Return the replay that comes next; None at the end or where the budget does not allow it.

        Asked again without a result, it returns the same.
        """
        waiting = self.waiting()
        if not waiting:
            return None
        limits, trial = self.evidence.plan.limits, waiting[0]
        calls = sum(each.calls for each in waiting if each.pair == trial.pair >= 0) or trial.calls
        if limits.max_calls is not None and self.evidence.calls + calls > limits.max_calls:
            return None
        if limits.max_cost_usd is not None and self.evidence.cost >= limits.max_cost_usd:
            return None
        return trial

    def waiting(self) -> tuple[ReplayTrial, ...]:
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
        number = len(self.evidence.results)
        if not waiting:
            raise ResultMismatch(f"the experiment has ended after {number} replays")
        trial = waiting[0]
        asked, told = (
            _key(trial.arm, trial.phase, trial.pair),
            _key(result.arm, result.phase, result.pair),
        )
        if asked != told:
            raise ResultMismatch(
                f"replay {number} of the experiment is {asked}; the result is of {told}"
            )
        self._queue.pop(0)
        self.evidence.results.append((trial, result))

    def conclusion(self) -> Confirmation:
        """Return what the results so far have shown."""
        self.waiting()  # counts what was told last
        return conclude(self.evidence, not_isolated=self._not_isolated, plan_id=self._plan_id)

    def expected_calls(self) -> int:
        """Return an estimate of the live model calls from here to the end, within `max_calls`."""
        plan, evidence = self.evidence.plan, self.evidence
        limits, run = plan.limits, evidence.runs(*SEARCH)
        if not self.waiting():
            return 0
        start = max(0, limits.start_runs - run) * plan.length
        search = max(0, min(limits.screening_runs, _USUAL_SEARCH) - max(run, limits.start_runs))
        pairs = max(0, min(limits.pair_runs, _USUAL_PAIRS) - evidence.runs("pairs"))
        found = start + (search + pairs) * plan.length // 2
        return (
            found
            if limits.max_calls is None
            else max(0, min(found, limits.max_calls - evidence.calls))
        )

    def _all(self, seed: int) -> Iterator[tuple[ReplayTrial, ...]]:
        evidence, limits = self.evidence, self.evidence.plan.limits
        if limits.verifications:
            yield (ReplayTrial(ReplayArm("verify"), "verify"),) * limits.verifications
        if limits.scores and set(evidence.outcomes("verify")) <= {False}:
            yield (ReplayTrial(ReplayArm("score"), "score"),) * limits.scores
        if set(evidence.outcomes("verify") + evidence.outcomes("score")) <= {False}:
            yield from measure(evidence, -1, limits.start_runs, "start")
            yield from prove(evidence, seed)


def _key(arm: ReplayArm, phase: str, pair: int) -> str:
    """Name a replay; two are the same if their names are."""
    fix = _words(arm.fix) if arm.fix else ""
    also = "".join(f" and at step {step}{_words(fix)}" for step, fix in arm.also)
    return f"{arm.operator} at step {arm.step}{fix}{also} ({phase}, pair {pair})"


def _words(fix: Fix) -> str:
    return f" by {fix.source} {fix.model} {fix.text!r}{' as a result' * fix.result}"
