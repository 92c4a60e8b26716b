"""Mode 3.3, incorrect verification, where the record contradicts what is approved."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mast_trace_judge.local.rules._evidence import checks, finding, first_line, is_said
from mast_trace_judge.local.rules._registry import rule
from mast_trace_judge.local.rules.calculation import false_equation, wrong_total
from mast_trace_judge.local.rules.mismatch import misstated_result
from mast_trace_judge.local.rules.misreading import (
    misattributed_value,
    mislabelled_value,
    swapped_values,
)
from mast_trace_judge.local.rules.verification import approves
from mast_trace_judge.local.texts import quote
from mast_trace_judge.verdict import Evidence

if TYPE_CHECKING:
    from mast_trace.trajectory import Step, Trajectory
    from mast_trace_judge.verdict import ModeFinding

_CONTRADICTED = (
    *(misstated_result, false_equation, wrong_total),
    *(mislabelled_value, swapped_values, misattributed_value),
)
"""Rules that find statements which the record contradicts."""


@rule("3.3")
def approved_a_contradiction(trajectory: Trajectory) -> list[ModeFinding]:
    """A checking agent passes a statement that the run's results contradict (heuristic).

    Definition: MAST 3.3, "failure to adequately validate or cross-check crucial information". The
    statement is one that a rule of mode 2.6 finds; the approval is the checker's next word on it,
    without any reservation.
    """
    passed = [
        (step, match)
        for step in trajectory.steps
        if checks(step.agent) and is_said(step) and (match := approves(step)) is not None
    ]
    if not passed:
        return []
    for contradicted in _CONTRADICTED:
        for found in contradicted(trajectory):
            stated = [trajectory.steps[i] for i in found.steps if is_said(trajectory.steps[i])]
            if not stated:
                continue
            for step, match in passed:
                if _answers(trajectory, stated[0], step):
                    return [
                        finding(
                            "3.3",
                            min(0.7, found.probability),
                            Evidence.HEURISTIC,
                            f"{step.agent} passes what the record contradicts: {found.reason}",
                            [stated[0], step],
                            [first_line(stated[0]), quote(step.text, *match.span())],
                        )
                    ]
    return []


def _answers(trajectory: Trajectory, stated: Step, approval: Step) -> bool:
    """Return whether an approval is of a statement: the author says nothing new in between."""
    between = trajectory.steps[stated.index + 1 : approval.index]
    return (
        approval.index > stated.index
        and approval.agent != stated.agent
        and not any(is_said(step) and step.agent == stated.agent for step in between)
    )
