"""The judge's candidates as a prior over decision points."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mast_trace_judge.confirmation import Confirmation
    from mast_trace_judge.decision_points import DecisionPoint
    from mast_trace_judge.verdict import Candidate, DecisiveError, Verdict


def prior_of(verdict: Verdict | None, points: Sequence[DecisionPoint]) -> dict[int, float]:
    """Return the judge's probabilities by decision point; empty without a verdict.

    A candidate that is no decision point, such as a tool's result, counts for the model answer before
    it, of its own agent if there is one.
    """
    if verdict is None:
        return {}
    told = {each.step: (each.agent, each.probability) for each in verdict.candidates}
    if verdict.decisive is not None:
        told[verdict.decisive.step] = verdict.decisive.agent, verdict.decisive.probability
    prior: dict[int, float] = {}
    for step, (agent, probability) in told.items():
        point = point_of(step, agent, points)
        if point is not None:
            prior[point.step] = prior.get(point.step, 0.0) + probability
    return prior


def with_judged_steps(
    conclusion: Confirmation, verdict: Verdict | None, points: Sequence[DecisionPoint]
) -> Confirmation:
    """Return a conclusion in which a refuted answer refutes the judge's candidates that it made, too.

    A candidate may be a later step of the same model answer, such as its second tool call.
    """
    if verdict is None or not conclusion.refuted:
        return conclusion
    named: tuple[Candidate | DecisiveError, ...] = verdict.candidates
    if verdict.decisive is not None:
        named = (*named, verdict.decisive)
    refuted = set(conclusion.refuted)
    for each in named:
        point = point_of(each.step, each.agent, points)
        if point is not None and point.step in conclusion.refuted:
            refuted.add(each.step)
    return conclusion.model_copy(update={"refuted": tuple(sorted(refuted))})


def point_of(step: int, agent: str, points: Sequence[DecisionPoint]) -> DecisionPoint | None:
    """Return the decision point that made a step: the last one up to it, of its agent if any."""
    before = [point for point in points if point.step <= step]
    own = [point for point in before if point.agent == agent]
    return max(own or before, key=lambda point: point.step, default=None)
