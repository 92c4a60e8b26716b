"""Compares a replayed run with the recorded one, step by step."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING

from mast_trace.replay.canonical import canonical_arguments, canonical_text

if TYPE_CHECKING:
    from mast_trace.trajectory import Step, Trajectory


@dataclass(frozen=True)
class StepDifference:
    """The first step in which two runs differ.

    Attributes:
        index: the step's number, from 0.
        text: description of the difference.
    """

    index: int
    text: str


def first_difference(recorded: Trajectory, replayed: Trajectory) -> StepDifference | None:
    """Return the first step that differs in kind, agent, text, tool, arguments or recipients.

    Ids of messages and spans are generated anew by each execution, so they are not compared. Texts
    and arguments are compared in their canonical form, which hides generated ids and times.
    """
    for index, (one, other) in enumerate(zip_longest(recorded.steps, replayed.steps)):
        if one is None:
            return StepDifference(index, f"additional step: {_told(other)}")
        if other is None:
            return StepDifference(index, f"missing step: {_told(one)}")
        for name, before, after in _compared(one, other):
            if before != after:
                text = f"{name} was {_short(before)}, is {_short(after)} ({_told(one)})"
                return StepDifference(index, text)
    return None


def _compared(one: Step, other: Step) -> list[tuple[str, str, str]]:
    return [
        ("kind", one.kind.value, other.kind.value),
        ("agent", one.agent, other.agent),
        ("tool", one.tool, other.tool),
        ("arguments", _arguments(one), _arguments(other)),
        ("text", canonical_text(one.text), canonical_text(other.text)),
        ("recipients", ", ".join(one.recipients), ", ".join(other.recipients)),
        ("hand-off", one.handoff_to, other.handoff_to),
    ]


def _arguments(step: Step) -> str:
    return canonical_arguments(step.arguments or None)


def _told(step: Step) -> str:
    what = f"calls {step.tool}" if step.tool else f"says {_short(step.text)}"
    return f"{step.agent or 'an unknown agent'} {what}"


def _short(text: str) -> str:
    return repr(text if len(text) <= 80 else text[:77] + "...")
