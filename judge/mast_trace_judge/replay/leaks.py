"""Refuses fixes that hold what only the right answer knows.

A fix with the right answer in it turns every failure into success, at any step, and so proves nothing.
A correction may hold what the run knew before the step, and nothing of the right answer besides.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from mast_trace_judge.local.figures import figures, known_values

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from mast_trace.trajectory import Trajectory

_QUOTED = re.compile(
    r'"([^"\n]{2,200})"|\u201c([^\u201d\n]{2,200})\u201d|\u201e([^\u201c\u201d\n]{2,200})[\u201c\u201d]'
    r"|\u00ab([^\u00bb\n]{2,200})\u00bb|`([^`\n]{2,200})`|(?<!\w)'([^'\n]{2,200})'(?!\w)"
)
_WORD = re.compile(r"[^\W_]+")
_SHORT_WORDS = 12
"""Words up to which a right answer counts as a quoted word as a whole."""


def known_before(run: Trajectory, step: int, span_id: str = "") -> list[str]:
    """Return the texts that the run held before a step: its task, earlier steps, and its inputs.

    Args:
        run: the recorded run.
        step: index of the step; its own text does not count.
        span_id: the model call that made the step; what it was shown counts.
    """
    earlier = [text for each in run.steps[:step] for text in (each.text, each.arguments)]
    calls = [call for call in run.invocations if span_id and call.span_id == span_id]
    shown = [message for call in calls for message in run.seen_by(call)]
    asked = [call.text for message in shown for call in message.tool_calls]
    return [run.task, *earlier, *(message.content for message in shown), *asked]


def leaked(fix: str, answers: Iterable[str], known: Iterable[str]) -> str:
    """Return the first thing in a fix that only the right answers hold; empty if there is none.

    Compared are numbers in any notation and quoted words; a right answer of at most twelve words also
    counts as a whole.

    Args:
        fix: text of the fix.
        answers: the right answers, as far as known, and the reasons given with the outcome.
        known: texts of the run before the step.
    """
    before = list(known)
    numbers, said = known_values(before), [_words(each) for each in before]
    of_fix = {value: each.literal for each in figures(fix) for value in each.readings}
    text = _words(fix)
    for answer in answers:
        for figure in figures(answer):
            if figure.readings & numbers:
                continue
            for value in figure.readings & of_fix.keys():
                return of_fix[value]
        for words in _quoted(answer):
            wanted = _words(words)
            if wanted.strip() and wanted in text and not any(wanted in each for each in said):
                return words
    return ""


def _words(text: str) -> str:
    """Return the words in lower case with single spaces between and around them."""
    return f" {' '.join(_WORD.findall(text.casefold()))} "


def _quoted(answer: str) -> Iterator[str]:
    for match in _QUOTED.finditer(answer):
        yield next(filter(None, match.groups()))
    whole = answer.strip().strip(".!").strip()
    if 0 < len(whole.split()) <= _SHORT_WORDS:
        yield whole
