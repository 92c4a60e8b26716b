"""Reads the conclusion of replays out of an exported verdict, and checks it against its run."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from mast_trace_judge.confirmation import Confirmation

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mast_trace.trajectory import Step

_MOST = 2**31


def confirmation_in(verdict: Any, steps: Sequence[Step]) -> Confirmation | None:
    """Return the conclusion that a verdict holds; None where it holds none.

    Agent and span of the origin are those of its step. The plan is left out: replays are not
    exported, so the experiment cannot be resumed elsewhere.

    Args:
        verdict: as `mast-trace export` writes it.
        steps: of the run.

    Raises:
        ValueError: it cannot be read, or names a step that the run does not have.
    """
    shape = verdict.get("confirmation") if isinstance(verdict, dict) else None
    if shape is None:
        return None
    try:
        told = Confirmation.model_validate(shape)
    except ValidationError as error:
        where = ".".join(map(str, error.errors()[0]["loc"]))
        raise ValueError(f"its confirmation cannot be read at {where or 'its top'}") from None
    if told.status == "untested":
        return None
    if any(not -1 <= step < len(steps) for step in _steps_of(told)):
        raise ValueError("its confirmation names a step that the run does not have")
    if not all(_fits(value) for value in _numbers(told.model_dump())):
        raise ValueError("its confirmation holds a number that is none or too large")
    own: dict[str, Any] = {"plan_id": "", "origin_agent": "", "origin_span_id": ""}
    if told.origin is not None and told.origin >= 0:
        step = steps[told.origin]
        own |= {"origin_agent": step.agent, "origin_span_id": step.span_id}
    else:
        own["origin"] = None
    return told.model_copy(update=own)


def _steps_of(told: Confirmation) -> Iterator[int]:
    yield from (step for step in (told.origin, told.point_of_no_return) if step is not None)
    yield from told.refuted
    yield from (rate.step for rate in told.curve)
    yield from (step for each in told.contrasts for step in each.steps)
    yield from (step for step, _ in told.likely)


def _numbers(value: Any) -> Iterator[float]:
    """Yield every number in a nested value."""
    if isinstance(value, dict):
        value = tuple(value.values())
    if isinstance(value, list | tuple):
        for each in value:
            yield from _numbers(each)
    elif isinstance(value, int | float):
        yield value


def _fits(number: float) -> bool:
    """Return whether the database can hold a number; an e-value may be large, a count may not."""
    whole = isinstance(number, int)
    return -1 <= number < _MOST if whole else math.isfinite(number)
