"""Mode 2.6, reasoning-action mismatch, where an agent copies a value with two of its signs exchanged, or in another unit."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from mast_trace_judge.local.acts import by_user, doubted, failed, finding, is_said, is_tool
from mast_trace_judge.local.arithmetic import TOO_MANY, derived, exchanged
from mast_trace_judge.local.figures import in_unit, unit_of
from mast_trace_judge.local.measures import Quantity, measured
from mast_trace_judge.local.rules._registry import rule
from mast_trace_judge.local.rules.mismatch import misstated_result
from mast_trace_judge.local.stated import (
    Known,
    acts,
    amounts,
    as_written,
    few,
    ids,
    outside_dates,
    prompts,
)
from mast_trace_judge.local.texts import quote
from mast_trace_judge.verdict import Evidence

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mast_trace.trajectory import Step, Trajectory
    from mast_trace_judge.local.figures import Figure
    from mast_trace_judge.verdict import ModeFinding

_DIGITS = 4
"""Digits, those of round numbers at the end left out, from which a figure is hardly another one's by chance."""
_SIGNS = 5
"""Signs from which an identifier is not."""
_PROBABILITY = 0.65
_SAME_UNIT = 3
"""Digits that are enough for two figures of one unit or name."""


class _Held(NamedTuple):
    """A figure that a step holds, or one of its identifiers."""

    step: Step
    text: str
    figure: Figure | None
    written: str


@rule("2.6", contradicts=True)
def miscopied_value(trajectory: Trajectory) -> list[ModeFinding]:
    """A message or an act has a figure or an identifier of the run with two neighbouring signs exchanged (heuristic).

    Definition: MAST 2.6. Nothing before holds the value, and no step of arithmetic makes it; exactly one value before is
    the same with two signs exchanged, and neither this step nor any later act or message of an agent has that one. Figures
    have four digits, or three and one unit or name; no sentence that denies, doubts or quotes the value counts. Values of
    the task, and of the agent's own tool where `misstated_result` tells of them, are left to other rules.
    """
    known = Known(trajectory)
    held: dict[str, dict[str, _Held]] = defaultdict(dict)
    told_of: set[int] | None = None
    count = 0
    for step in trajectory.steps:
        is_told = by_user(step) or is_said(step)
        text = step.text if is_said(step) else step.arguments if acts(step) else ""
        if count > TOO_MANY:
            return []
        values = _values(step, text) if text and not failed(step) else []
        for value in values:
            source = _exchanged(value, held)
            if source is None or not _is_new(value, source, known.before(step)):
                continue
            if told_of is None:
                told_of = _told_of(trajectory)
            if step.index not in told_of and not _is_used(trajectory, step, text, source):
                one, other = (as_written(each.written, each.text) for each in (value, source))
                before = source.step
                origin = (
                    f"{before.tool} returned"
                    if before.tool
                    else f"{before.agent or 'a user'} wrote"
                )
                why = f"{step.agent} gives {one} where {origin} {other}."
                told = [quote(source.text, limit=300), quote(text, limit=300)]
                places = [source.step, step]
                return [finding("2.6", _PROBABILITY, Evidence.HEURISTIC, why, places, told)]
        if is_told or (is_tool(step) and not failed(step)):
            for value in values if is_said(step) else _values(step, step.text):
                count += 1
                held[_signs(value.written)].setdefault(value.written, value)
    return []


@rule("2.6", contradicts=True)
def exchanged_unit(trajectory: Trajectory) -> list[ModeFinding]:
    """A message gives a figure of the run in another unit, and does not convert it (heuristic).

    Definition: MAST 2.6. The figure has three digits, or two and a decimal point. It stood before in one other unit of the
    same measure, and nowhere without one; it is no other figure converted, and no message has it in the right unit from
    then on. No sentence that denies, doubts or quotes the value counts.
    """
    held: dict[float, list[tuple[Step | None, Quantity | None]]] = defaultdict(list)
    for text in (trajectory.task, *prompts(trajectory).values()):
        _hold(held, None, text, ())
    seen: list[Quantity] = []
    for step in trajectory.steps:
        if failed(step) or len(seen) > TOO_MANY:
            continue
        here = [*measured(step.text)] if few(outside_dates(step.text)) else []
        for new in here if is_said(step) else ():
            source, old = next(iter(held[new.value]), (None, None))
            units = [each for _, each in held[new.value]]
            if source and old and _is_unconverted(new, step.text, units, seen):
                later = (each for each in trajectory.steps[step.index :] if is_said(each))
                if not any(_gives(each.text, old) for each in later):
                    origin = f"{source.tool} returned" if source.tool else f"{source.agent} wrote"
                    given = f"{step.agent} gives {new.figure.literal} in {new.unit}"
                    why = f"{given} where {origin} it in {old.unit}."
                    told = [quote(each.text, limit=300) for each in (source, step)]
                    places = [source, step]
                    return [finding("2.6", _PROBABILITY, Evidence.HEURISTIC, why, places, told)]
        seen += here
        _hold(held, step, step.text, here)
    return []


def _hold(
    held: dict[float, list[tuple[Step | None, Quantity | None]]],
    step: Step | None,
    text: str,
    with_units: Sequence[Quantity],
) -> None:
    """Remember the figures of a text, each with its unit if it has one."""
    spans = {each.figure.span for each in with_units}
    for each in with_units:
        held[each.value].append((step, each))
    for figure in few(outside_dates(text)):
        for value in figure.as_one if figure.span not in spans else ():
            held[value].append((step, None))


def _is_unconverted(
    new: Quantity, text: str, before: Sequence[Quantity | None], seen: Sequence[Quantity]
) -> bool:
    """Return whether a figure is long enough, stood in other units alone, and is none of those seen converted."""
    digits = new.figure.literal.strip("0")
    return (
        sum(map(str.isdigit, digits)) >= (2 if "." in digits else _SAME_UNIT)
        and all(old is not None and new.is_other_unit(old) for old in before)
        and not any(map(new.is_converted, seen))
        and not doubted(text, *new.figure.span)
    )


def _gives(text: str, old: Quantity) -> bool:
    return any((each.value, each.unit) == (old.value, old.unit) for each in measured(text))


def _values(step: Step, text: str) -> list[_Held]:
    """Return the figures and the identifiers of a text."""
    found = [_Held(step, text, each, each.literal.replace(",", "")) for each in few(amounts(text))]
    return found + [_Held(step, text, None, name) for name in few(ids(text))]


def _signs(written: str) -> str:
    """Return the signs of a value in order: values of which signs are exchanged have the same."""
    return "".join(sorted(written))


def _exchanged(value: _Held, held: Mapping[str, Mapping[str, _Held]]) -> _Held | None:
    """Return the only value before that has two neighbouring signs of this one exchanged."""
    found = [
        each
        for name, each in held.get(_signs(value.written), {}).items()
        if exchanged(name, value.written) and (each.figure is None) == (value.figure is None)
    ]
    return found[0] if len(found) == 1 else None


def _is_new(value: _Held, other: _Held, known: Known) -> bool:
    """Return whether a value is neither known nor follows from what is, and can be the other one miscopied."""
    figure, meant = value.figure, other.figure
    if figure is None or meant is None:
        return len(value.written) >= _SIGNS and value.written not in known.names
    if figure.readings & known.values or doubted(value.text, *figure.span):
        return False
    unit = unit_of(value.text, figure)
    alike = bool(unit) and unit == unit_of(other.text, meant)
    digits = len("".join(filter(str.isdigit, value.written)).strip("0"))
    measured = {in_unit(value.text, figure), in_unit(other.text, meant)} - {""}
    if digits < (_SAME_UNIT if alike else _DIGITS) or len(measured) > 1:
        return False
    rest = known.values - meant.readings
    both = [(a, b) for a in figure.as_one for b in meant.as_one]
    apart = {round(each, 6) for a, b in both for each in (abs(a - b), a + b)}
    follows = any(derived(each, rest) for each in figure.as_one)
    return not follows and not apart & {round(abs(each), 6) for each in rest}


def _told_of(trajectory: Trajectory) -> set[int]:
    """Return the steps that `misstated_result` tells of, where it is surer."""
    found = misstated_result(trajectory)
    return {step for each in found if each.probability > _PROBABILITY for step in each.steps}


def _is_used(trajectory: Trajectory, step: Step, text: str, source: _Held) -> bool:
    """Return whether the right value stands in a step, in the task, or in what agents say and do later."""
    later = trajectory.steps[step.index + 1 :]
    texts = [
        text,
        trajectory.task,
        *(each.arguments for each in later),
        *(e.text for e in later if is_said(e)),
    ]
    written = as_written(source.written, source.text)
    return any(written in each for each in texts)
