"""The origin of a run's final answer."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from mast_trace_judge.local.phrases import lowered
from mast_trace_judge.local.rules._evidence import by_user, ends_run
from mast_trace_judge.local.texts import number, numbers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mast_trace.trajectory import Step, Trajectory

_ANNOUNCED = (
    ("final answer:", re.compile(r"FINAL ANSWER:\s*(.+)")),
    ("boxed{", re.compile(r"\\boxed\{([^{}]+)\}")),
    (
        "answer ",
        re.compile(
            r"(?:final |correct )?answer (?:is|to [^.\n]{0,80} is|:)[:\s]*(.+)", re.IGNORECASE
        ),
    ),
    ("**", re.compile(r"\bis (?:therefore |thus |approximately )?\*\*([^*\n]{1,80})\*\*")),
    ("**", re.compile(r"\*\*([^*\n]{1,80})\*\*")),
)
"""Patterns of an announced value, each with the signs that its matches contain in lower case."""
_EMPTY = re.compile(r"(?:TERMINATE|RUN\.SH COMPLETE[^\n]*|SCENARIO\.PY COMPLETE[^\n]*|[\s!#])*")
_LAST = 12
"""Steps at the end of a run among which its last words are sought."""
_EDGES = " \t\r\n*`\"'.,:;$"


def final_answer(steps: Sequence[Step]) -> str:
    """Return the value that the last words announce; empty if they announce none.

    The words looked at are the last three texts that hold more than a signal to stop.
    """
    spoken = [text for step in steps[-_LAST:] if not _EMPTY.fullmatch(text := _words(step))]
    for text in reversed(spoken[-3:]):
        end = text[-3000:]
        low = lowered(end)
        for sign, pattern in _ANNOUNCED:
            found = pattern.findall(end) if sign in low else []
            value = found[-1].strip(_EDGES) if found else ""
            if value:
                return value[:200]
    if spoken:
        stated = numbers(spoken[-1][-1000:])
        if stated:
            return stated[-1][0]
    return ""


def _words(step: Step) -> str:
    """Return the text of a step; for a call that ends the run, also its arguments."""
    return f"{step.arguments}\n{step.text}" if step.tool and ends_run(step) else step.text


def introduced(trajectory: Trajectory, value: str) -> int | None:
    """Return the first step after the task that holds the value; None if the task holds it."""
    if not value:
        return None
    if holds(trajectory.task, value):
        return None
    for step in trajectory.steps:
        if by_user(step) or step.text.startswith(trajectory.task[:200] or "\0"):
            continue
        if holds(step.text, value):
            return step.index
    return None


def holds(text: str, value: str) -> bool:
    """Return whether a text holds a value: as a number where it is one, else as words."""
    wanted = numbers(value)
    if len(wanted) == 1 and len(value) <= 30:
        figure = number(wanted[0][0])
        return any(number(match[0]) == figure for match in numbers(text))
    folded = " ".join(value.lower().split())
    return folded in " ".join(text.lower().split())
