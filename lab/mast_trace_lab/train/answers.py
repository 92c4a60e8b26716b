"""Reads the step that a model's answer names, by the judge's own parsing and verification."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pydantic import StrictInt  # noqa: TC002  # pydantic reads it at run time

from mast_trace.exceptions import VerdictUnreadable
from mast_trace_judge.llm.answers import ModelAnswer, Reading
from mast_trace_judge.llm.parsing import parse_answer
from mast_trace_judge.llm.quotes import QuoteCheck
from mast_trace_judge.llm.verification import Verifier

if TYPE_CHECKING:
    from mast_trace_lab.train.examples import Example

_SEVERITIES: Final = ("decisive", "major", "minor")


class StepAnswer(ModelAnswer):
    """The answer to the question ``step``."""

    step: StrictInt


def named_step(text: str, example: Example) -> int | None:
    """Return the step that an answer names; None if the format gate is closed.

    The gate is open to an answer that has the shape that its question asks for, and a step that the
    run has. An answer to ``read`` names the step of its worst point that was not repaired, the
    earliest of several, and only points with a quote that is in the run count: the judge drops the
    others.
    """
    try:
        if example.question == "step":
            step = parse_answer(text, StepAnswer).step
            return step if 0 <= step < example.steps else None
        reading = parse_answer(text, Reading)
    except VerdictUnreadable:
        return None
    points = Verifier(QuoteCheck(example.run), example.steps).points(reading.points)
    worst = min(
        (point for point in points if point.repaired_at is None),
        key=lambda point: (_SEVERITIES.index(point.severity), point.step),
        default=None,
    )
    return None if worst is None else worst.step
