"""A wrong value's way through a run: which steps inherit it, and whether it reaches the answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from mast_trace.trajectory import Step, StepKind, Trajectory
from mast_trace_judge.local.acts import announced, doubted, final_answer, is_said
from mast_trace_judge.local.dates import days
from mast_trace_judge.local.equations import equations
from mast_trace_judge.local.figures import figures, known_values
from mast_trace_judge.local.stated import ids

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Sequence

    from mast_trace_judge.verdict import ModeFinding

_MOST_TIMES = 31
"""Nights, people or pieces that a figure is taken for in words, as in "three nights at 181 are 543"."""
_MOST_MADE = 5
"""New figures up to which a tool's result is taken for made from its arguments; a longer one is a document, of which
most figures have nothing to do with them."""
_TELLING = 3
"""Digits from which a figure is hardly a count of things that comes again by chance."""


class Heirs(NamedTuple):
    """The way of a wrong value.

    Attributes:
        steps: indices of the later steps that hold it, or what was made of it, in order.
        possible: those of them in which the value may be another one: it has less than three digits, or a tool has
            returned it in the meantime by itself.
        reaches_answer: a figure stands in the run's answer, or went into it.
    """

    steps: tuple[int, ...]
    possible: tuple[int, ...]
    reaches_answer: bool


NO_HEIRS = Heirs((), (), reaches_answer=False)


def heirs(trajectory: Trajectory, step: int, mode: ModeFinding) -> Heirs:
    """Follow the figures, dates and identifiers that a step brought in and a finding of mode 2.6 quotes.

    Only mode 2.6 says that a value is wrong; what other slips have to do with the answer, values do not tell. A figure is followed
    into the result of an equation, into that of a tool that was called with it, and into a small multiple of it that the
    answer tells in words.
    """
    if mode.code != "2.6":
        return NO_HEIRS
    steps = trajectory.steps
    known = known_values([trajectory.task, *(each.text for each in steps[:step])])
    carried = known_values([_held(steps[step])]) & known_values(mode.quotes) - known
    before = [trajectory.task, *(_held(each) for each in steps[:step])]
    names = (_names([_held(steps[step])]) & _names(mode.quotes)) - _names(before)
    own: set[Hashable] = set()
    found: list[int] = []
    possible: list[int] = []
    for each in steps[step:] if carried or names else ():
        used, told = known_values([each.arguments]), known_values([each.text])
        if each.kind is StepKind.TOOL:
            if used & carried:
                made = told - known
                carried |= made if len(made) <= _MOST_MADE else set()
            else:
                own |= told & carried
        held = {*((used | told) & carried), *(_names([_held(each)]) & names)}
        if held and each.index > step:
            found.append(each.index)
            if all(one in own or _is_short(one) for one in held):
                possible.append(each.index)
        for equation in equations(each.text):
            if any(term.readings & carried for term in equation.terms):
                carried |= equation.result.readings - known
    return Heirs(tuple(found), tuple(possible), _is_answered(steps, carried))


def _is_answered(steps: Sequence[Step], carried: set[float]) -> bool:
    last = next((each.text for each in reversed(steps) if is_said(each)), "")
    answers = known_values([final_answer(steps)])
    if not announced(steps):
        # In prose a short figure may be any.
        told = [each for each in figures(last) if not doubted(last, *each.span)]
        answers |= {value for each in told for value in each.readings if not _is_short(value)}
    counted = {
        figure * factor
        for figure in carried & known_values([last])
        for factor in range(2, _MOST_TIMES + 1)
    }
    return bool((carried | counted) & answers)


def _held(step: Step) -> str:
    return f"{step.arguments}\n{step.text}"


def _names(texts: Iterable[str]) -> set[Hashable]:
    """Return the identifiers and dates of texts."""
    found: set[Hashable] = set()
    for text in texts:
        found |= ids(text)
        found |= {reading for day in days(text) for reading in day.readings}
    return found


def _is_short(value: Hashable) -> bool:
    digits = f"{abs(value):.10g}".replace(".", "").strip("0") if isinstance(value, float) else ""
    return isinstance(value, float) and len(digits) < _TELLING
