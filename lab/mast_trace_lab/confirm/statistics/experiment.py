"""The experiment of `mast-trace confirm`: it asks for one replay after the other and takes the results."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from mast_trace_judge.arms import ArmResult, Fix, ReplayArm
from mast_trace_judge.confirmation import Confirmation, ConfirmationStatus, Contrast, SuccessRate
from mast_trace_judge.intervals import wilson
from mast_trace_lab.confirm.statistics.location import likely
from mast_trace_lab.confirm.statistics.plan import ExperimentLimits, Plan
from mast_trace_lab.confirm.statistics.proof import (
    DOUBT,
    FEWEST,
    LIKELY,
    SEARCH,
    ExperimentState,
    earlier_chance,
    is_origin,
    measure,
    prove,
)
from mast_trace_lab.program.budget import ReplayTrial, ResultMismatch

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from mast_trace_judge.decision_points import DecisionPoint
    from mast_trace_lab.confirm.statistics.comparison import Comparison

SURE: Final = 0.9
"""Probability from which a way of failing, or the point of no return, is named."""

NEVER: Final = 0.01
"""Probability of a fall at a step up to which the step is refuted by the search alone."""

_EARLIER: Final = "an earlier, repairable error is not excluded"

_SHARED: Final = (
    "replays of the same arm are all alike, but their outcomes go up and down along the run, so that they "
    "seem to share one draw, by a cache or a fixed seed: nothing is proved"
)

_THESE_ANSWERS: Final = (
    " (all replays behaved alike: this holds for these answers of the model alone)"
)


@dataclass(frozen=True)
class Finding:
    """A conclusion without its numbers.

    Attributes:
        status: the word.
        text: one sentence.
        proved: the proved fix at the origin.
        point: position of the point of no return, None if it is not located.
    """

    status: ConfirmationStatus
    text: str
    proved: Comparison | None = None
    point: int | None = None


def find(evidence: ExperimentState, not_isolated: str) -> Finding:
    """Return the word and the sentence for the results so far."""
    if not_isolated:
        return Finding("not isolated", not_isolated)
    if not evidence.plan.points:
        return Finding("inconclusive", "the run holds no model answer")
    early = _checks(evidence)
    if early is not None:
        return early
    proved = evidence.proved()
    single = [each for each in proved if not each.fix.also]
    if single:
        first = sorted(single, key=lambda each: each.position)
        origins = [each for each in first if is_origin(evidence, each.position)]
        return _proved(evidence, (origins or first)[0])
    if proved:
        return _overdetermined(evidence, min(proved, key=lambda each: len(each.further)))
    return _unproved(evidence)


def refuted(evidence: ExperimentState) -> tuple[int, ...]:
    """Return the judge's candidates and tested steps at which success almost certainly does not fall.

    It falls neither first nor last there, and no fix of the step is proved. Where the program fails from the start
    nothing falls anywhere, so that no step is refuted.
    """
    location = evidence.location
    if not evidence.counts or location.kinds.systematic > NEVER:
        return ()
    named = {each.position for each in evidence.comparisons if each.pairs}
    named |= set(evidence.plan.candidates)
    position = evidence.plan.position
    named -= {position(step) for each in evidence.proved() for step in each.contrast().steps}
    falls = [sum(each) for each in zip(location.origins, location.points, strict=True)]
    return tuple(each for each in sorted(named) if each >= 0 and falls[each] <= NEVER)


def _checks(evidence: ExperimentState) -> Finding | None:
    if not evidence.results:
        return Finding("untested", "no replay yet")
    texts = {
        "verify": (
            "a replay that changes nothing succeeds",
            "a replay that changes nothing has no outcome",
        ),
        "score": (
            "the oracle does not judge the recorded answer alike",
            "the recorded answer has no score",
        ),
    }
    for phase, (differs, missing) in texts.items():
        found = evidence.outcomes(phase)
        if any(found):
            return Finding("unstable", f"{differs}: {found.count(True)} of {len(found)} succeeded")
        if None in found:
            reasons = (each for trial, each in evidence.results if trial.phase == phase)
            reason = next(each for each in reasons if each.success is None)
            return Finding("inconclusive", f"{missing}: {reason.status} {reason.reason}".strip())
    return None


def _proved(evidence: ExperimentState, best: Comparison) -> Finding:
    location = evidence.location
    name = _named(best.step, best.agent)
    record = best.contrast()
    counts = (
        f"{record.fix_successes} of {record.pairs} replays succeed with the step corrected, {record.keep_successes} of "
        f"{record.pairs} with it as recorded"
    )
    if evidence.deterministic and best.alike:
        if not evidence.falls_once:
            return Finding("inconclusive", _SHARED)
        counts += _THESE_ANSWERS
    if location.kinds.systematic >= LIKELY:
        text = f"{_from_the_start(evidence)}; correcting {name} helps: {counts}"
        return Finding("systematic", text, best)
    point = _point(evidence)
    if not is_origin(evidence, best.position):
        doubt = "success does not clearly fall at this step"
        if earlier_chance(evidence, best.position) > DOUBT:
            doubt = _EARLIER
        return Finding("inconclusive", f"correcting {name} helps: {counts}; {doubt}", point=point)
    later = sum(location.points[best.position + 1 :])
    if later >= SURE:
        last = "the point of no return is not located"
        if point is not None:
            last = f"after {_name(evidence, point)} nothing repairs it"
        return Finding("repairable", f"the error begins at {name}; {last}: {counts}", best, point)
    last = "" if point is not None else "; the point of no return is not located"
    return Finding("confirmed", f"{name} decided the failure: {counts}{last}", best, point)


def _overdetermined(evidence: ExperimentState, joint: Comparison) -> Finding:
    record = joint.contrast()
    names = " and ".join(_named(each.step, each.agent) for each in record.parts)
    text = (
        f"no correction helps alone, and those of {names} together do: {record.fix_successes} of {record.pairs} replays "
        f"succeed with them, {record.keep_successes} of {record.pairs} with the steps as recorded"
    )
    if evidence.deterministic and joint.alike:
        if not evidence.falls_once:
            return Finding("inconclusive", _SHARED)
        text += _THESE_ANSWERS
    return Finding("overdetermined", f"{text}{_needed(evidence, joint)}")


def _needed(evidence: ExperimentState, joint: Comparison) -> str:
    """Return what is known of the need for each part of a joint fix; of two each alone has failed."""
    parts = set(joint.contrast().steps)
    if len(parts) <= FEWEST:
        return ""
    fewer = [
        set(each.contrast().steps)
        for each in evidence.comparisons
        if each.further and each.pairs and len(each.further) < len(joint.further)
    ]
    if sum(each < parts and len(each) == len(parts) - 1 for each in fewer) == len(parts):
        return "; without any one of these it does not"
    return "; whether each of these is needed is not known"


def _unproved(evidence: ExperimentState) -> Finding:
    location, point = evidence.location, _point(evidence)
    if evidence.without_outcome:
        text = f"too many replays have no outcome, the last one: {evidence.without_outcome}"
        return Finding("inconclusive", text, point=point)
    if location.kinds.systematic >= SURE:
        tested = any(each.pairs for each in evidence.comparisons)
        helps = "no tested fix helps" if tested else "no fix was tested"
        return Finding("systematic", f"{_from_the_start(evidence)}; {helps}")
    if location.kinds.diffuse + location.kinds.none >= SURE:
        text = "success declines without a single step that explains it"
        if location.kinds.none > location.kinds.diffuse:
            text = (
                "success does not decline: the failure was chance, or comes after the last answer"
            )
        return Finding("diffuse", f"{text}; no decisive step")
    judged = evidence.plan.candidates
    top = max(judged, key=lambda each: judged[each], default=None)
    if top is not None and top in refuted(evidence):
        text = f"success does not fall at {_name(evidence, top)}; no other step is proved"
        return Finding("refuted", text, point=point)
    if point is None:
        return Finding("inconclusive", "no step is proved")
    text = f"point of no return {_name(evidence, point)}; no fix is proved; {_EARLIER}"
    return Finding("inconclusive", text, point=point)


def _point(evidence: ExperimentState) -> int | None:
    if evidence.deterministic and not evidence.falls_once:
        return None
    points = evidence.location.points
    best = max(range(len(points)), key=lambda each: points[each])
    return best if points[best] >= SURE else None


def _from_the_start(evidence: ExperimentState) -> str:
    successes, runs = evidence.counts.get(-1, (0, 0))
    return f"the program fails from the start: {successes} of {runs} replays of all of it succeeded"


def _name(evidence: ExperimentState, position: int) -> str:
    point = evidence.plan.points[position]
    return _named(point.step, point.agent)


def _named(step: int, agent: str) -> str:
    return f"step {step} ({agent})" if agent else f"step {step}"


def conclude(evidence: ExperimentState, *, not_isolated: str, plan_id: str) -> Confirmation:
    """Return what an experiment has shown so far.

    Args:
        evidence: of the experiment.
        not_isolated: the reason why replays are not comparable; empty if they are.
        plan_id: id of the plan.
    """
    plan, points = evidence.plan, evidence.plan.points
    found = find(evidence, not_isolated)
    costs = [result.cost_usd for _, result in evidence.results]
    proved, last = found.proved, None if found.point is None else points[found.point]
    return Confirmation(
        status=found.status,
        text=found.text,
        origin=proved.step if proved else None,
        origin_agent=proved.agent if proved else "",
        point_of_no_return=last.step if last else None,
        point_agent=last.agent if last else "",
        curve=_curve(evidence),
        contrasts=_contrasts(evidence),
        likely=_likely(evidence),
        refuted=tuple(points[each].step for each in refuted(evidence)),
        plan_id=plan_id,
        planned_contrasts=plan.planned + plan.spent,
        replays=len(costs),
        live_calls=evidence.calls,
        cost_usd=None if None in costs else evidence.cost,
    )


def _curve(evidence: ExperimentState) -> tuple[SuccessRate, ...]:
    found = []
    for position, (successes, runs) in sorted(evidence.counts.items()):
        low, high = wilson(successes, runs)
        step = evidence.plan.points[position].step if position >= 0 else -1
        found.append(SuccessRate(step=step, successes=successes, runs=runs, low=low, high=high))
    # Answers of parallel branches may have ended in another order than their steps have.
    return tuple(sorted(found, key=lambda each: each.step))


def _contrasts(evidence: ExperimentState) -> tuple[Contrast, ...]:
    """Return the tested fixes, those of earlier plans included."""
    found = [each.contrast() for each in evidence.comparisons]
    keys = {each.key for each in found}
    before = evidence.plan.earlier.contrasts if evidence.plan.earlier else ()
    found += [each for each in before if each.key not in keys]
    position = evidence.plan.position
    return tuple(
        sorted((each for each in found if each.pairs), key=lambda each: position(each.step))
    )


def _likely(evidence: ExperimentState) -> tuple[tuple[int, float], ...]:
    if not evidence.counts:
        return ()
    members = likely(dict(enumerate(evidence.location.origins)))
    return tuple((evidence.plan.points[position].step, value) for position, value in members)


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
