"""The conclusion of an experiment: a word, a sentence, and the numbers behind them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mast_trace_judge.confirmation import Confirmation, SuccessRate
from mast_trace_judge.intervals import wilson
from mast_trace_lab.confirm.statistics.findings import find, refuted
from mast_trace_lab.confirm.statistics.location import likely

if TYPE_CHECKING:
    from mast_trace_judge.confirmation import Contrast
    from mast_trace_lab.confirm.statistics.evidence import Evidence


def conclude(evidence: Evidence, *, not_isolated: str, plan_id: str) -> Confirmation:
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


def _curve(evidence: Evidence) -> tuple[SuccessRate, ...]:
    found = []
    for position, (successes, runs) in sorted(evidence.counts.items()):
        low, high = wilson(successes, runs)
        step = evidence.plan.points[position].step if position >= 0 else -1
        found.append(SuccessRate(step=step, successes=successes, runs=runs, low=low, high=high))
    return tuple(found)


def _contrasts(evidence: Evidence) -> tuple[Contrast, ...]:
    """Return the tested fixes, those of earlier plans included."""
    found = [each.contrast() for each in evidence.comparisons]
    keys = {each.key for each in found}
    before = evidence.plan.earlier.contrasts if evidence.plan.earlier else ()
    found += [each for each in before if each.key not in keys]
    position = evidence.plan.position
    return tuple(
        sorted((each for each in found if each.pairs), key=lambda each: position(each.step))
    )


def _likely(evidence: Evidence) -> tuple[tuple[int, float], ...]:
    if not evidence.counts:
        return ()
    members = likely(dict(enumerate(evidence.location.origins)))
    return tuple((evidence.plan.points[position].step, value) for position, value in members)
