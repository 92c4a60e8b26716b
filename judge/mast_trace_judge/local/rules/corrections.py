"""Mode 2.5, ignored other agent's input, where an agent is corrected and goes on as before."""

from __future__ import annotations

import re
from itertools import combinations
from typing import TYPE_CHECKING

from mast_trace_judge.local.acts import failed, finding, holds, is_said, name_words
from mast_trace_judge.local.figures import figures, in_unit, known_values, unit_behind
from mast_trace_judge.local.rules._registry import rule
from mast_trace_judge.local.stated import (
    acts,
    amounts,
    arguments,
    as_written,
    ids,
    leaves,
    owner,
    sentences,
    stem,
    stems,
)
from mast_trace_judge.local.texts import quote
from mast_trace_judge.verdict import Evidence

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mast_trace.trajectory import Step, Trajectory
    from mast_trace_judge.local.figures import Figure
    from mast_trace_judge.verdict import ModeFinding

_CORRECTS = re.compile(
    r"\b(?:correct(?:ion|ed)?|instead|change|rather|wrong|no longer|waived|stattdessen|falsch)\b",
    re.IGNORECASE,
)
_INSTEAD = re.compile(r"\b(?:instead(?! of)|stattdessen)\b", re.IGNORECASE)
_OPEN = re.compile(
    r"\b(?:if|unless|whether|would|could|might|perhaps|maybe|also|as well|too|then|next|later|after\w*|other|another|second|falls|wenn)\b|\?",
    re.IGNORECASE,
)
"""A sentence with one of these sets a condition, or asks for something besides."""
_OF_ANOTHER = re.compile(
    r"\b(?:budget|limit|deposit|balance|at most|up to|under|max\w*|left|was|were|had)\b",
    re.IGNORECASE,
)
"""Words of an amount that nobody is to take."""
_NOT = re.compile(
    r"(?P<right>[^\s,;:.\"]{1,8}),? (?:not|instead of|rather than) (?P<wrong>[^\s,;:.\"]{1,8})"
    r"|\b(?:change|replace|correct) (?P<old>[^\s,;:.\"]{1,8}) (?:to|by|with|into) (?P<new>[^\s,;:.\"]{1,8})"
)
_RATHER = re.compile(r"(?P<right>[\w.:/-]*\w),? (?:and )?not (?:the |in )?(?P<wrong>[\w.:/-]*\w)")
_INSTRUCTION = 4
"""Words up to which a sentence with an amount says nothing but to use it."""
_BEGIN = 2
"""Words at the beginning of an instruction among which its verb is, with "please" before it."""
_TENFOLD = 10


@rule("2.5", contradicts=True)
def ignored_correction(trajectory: Trajectory) -> list[ModeFinding]:
    """An agent is told to take another value than before, and acts with the old one (heuristic).

    Definition: MAST 2.5, "disregarding or failing to adequately consider input or recommendations provided by other
    agents". The last message of another agent to it names in an instruction an identifier of the same form, or the
    only amount in the same money, rules an argument out beside another value ("30, not 20"), or corrects the unit
    behind its figures; its next step is an act with the old value, nothing that it does or says later has the new one,
    and a corrected unit stands in the answer as before. An agent that answers or looks something up first has heard the correction.
    """
    told: dict[str, Step] = {}
    for step in trajectory.steps:
        agent = owner(step)
        message = told.pop(agent, None)
        if is_said(step):
            told |= {name: step for name in step.recipients if name != agent}
        if message is None or not acts(step) or failed(step):
            continue
        later = [each for each in trajectory.steps[step.index :] if owner(each) == agent]
        for old, new in _corrected(trajectory, message, step, later):
            meant, taken = as_written(new, message.text), as_written(old, step.arguments)
            why = f"{message.agent} told {agent} to take {meant}, and {agent} goes on with {taken}."
            quotes = [quote(message.text, limit=300), quote(step.arguments)]
            return [finding("2.5", 0.65, Evidence.HEURISTIC, why, [message, step], quotes)]
    return []


def _corrected(
    trajectory: Trajectory, message: Step, act: Step, later: Sequence[Step]
) -> Iterator[tuple[str, str]]:
    """Yield the old and the new value of each correction in a message that an act and all later ones ignore."""
    given = [f"{each.arguments} {each.text}" for each in later]
    before = [each for each in trajectory.steps[: message.index] if act.agent in each.recipients]
    verb = {stem(word) for word in name_words(act.tool)}
    for sentence in sentences(message.text):
        if _OPEN.search(sentence):
            continue
        corrects = bool(_CORRECTS.search(sentence))
        named = ids(sentence)
        begin = " ".join(sentence.split()[:_BEGIN])
        if len(named) == 1 and (_INSTEAD.search(sentence) or verb & stems(begin)):
            (new,) = named
            old = {
                each for each in ids(act.arguments) & ids(message.text) if _form(each) == _form(new)
            }
            asks = any(verb & stems(each) and ids(each) & old for each in sentences(message.text))
            if old - named and not asks and not any(new in ids(each) for each in given):
                yield min(old), new
        yield from _ruled_out(sentence, act, given)
        if _OF_ANOTHER.search(sentence):
            continue
        told = [each for each in amounts(message.text) if in_unit(message.text, each)]
        only = [each for each in amounts(sentence) if in_unit(sentence, each)]
        if len(told) == len(only) == 1 and (corrects or len(sentence.split()) <= _INSTRUCTION):
            new_values = only[0].readings
            for each in _single_amounts(act):
                near_by = any(
                    a < _TENFOLD * b and b < _TENFOLD * a for a in each.as_one for b in new_values
                )
                was_told = each.readings & known_values([one.text for one in before])
                parts = known_values([act.arguments])
                follows = any(
                    abs(a - b) in new_values or a + b in new_values
                    for a, b in combinations(parts, 2)
                )
                if near_by and was_told and not follows and not new_values & known_values(given):
                    yield each.literal, only[0].literal
    yield from _units(trajectory, message, act, given)


def _single_amounts(act: Step) -> Iterator[Figure]:
    """Yield the amounts that are all of an argument: a code such as 6401 92 90 is none."""
    for _, value in leaves(arguments(act)):
        found = amounts(str(value))
        if len(found) == 1 == len(figures(str(value))):
            yield found[0]


def _ruled_out(sentence: str, act: Step, given: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield a value that a sentence rules out beside the right one, as in "30, not 20", and an argument has."""
    taken = {str(each).lower() for each in arguments(act).values()}
    for match in _RATHER.finditer(sentence):
        new, old = match["right"].lower(), match["wrong"].lower()
        is_value = any(sign.isdigit() for sign in old) == any(sign.isdigit() for sign in new)
        if is_value and old in taken and not any(holds(each.lower(), new) for each in given):
            yield old, new


def _units(
    trajectory: Trajectory, message: Step, act: Step, given: Sequence[str]
) -> Iterator[tuple[str, str]]:
    """Yield the units that a message corrects behind an agent's own figures, and the answer keeps."""
    own = [each.text for each in trajectory.steps[: message.index] if each.agent == act.agent]
    answer = next((each.text for each in reversed(trajectory.steps) if is_said(each)), "")
    for match in _NOT.finditer(message.text):
        old, new = match["wrong"] or match["old"], match["right"] or match["new"]
        kept = all(any(_has_unit(text, old) for text in texts) for texts in (own, [answer]))
        if kept and not _has_unit(answer, new) and not any(new in each for each in given):
            yield old, new


def _has_unit(text: str, unit: str) -> bool:
    return any(unit_behind(text, each) == unit.lower() for each in figures(text))


def _form(name: str) -> str:
    """Return an identifier with each letter and digit as a sign of its kind."""
    return re.sub(r"[a-z]", "a", re.sub(r"\d", "0", name))
