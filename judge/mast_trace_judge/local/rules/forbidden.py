"""Modes 1.1 and 1.2: an action that the task or a system prompt rules out, or of which an argument is against the task."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from mast_trace.trajectory.vocabulary import loaded
from mast_trace_judge.local.arithmetic import slip
from mast_trace_judge.local.rules._evidence import failed, finding, first_line, is_tool, name_words
from mast_trace_judge.local.rules._facts import (
    Known,
    acts,
    amounts,
    arguments,
    days,
    leaves,
    owner,
    prompts,
    sentences,
    stem,
    stems,
)
from mast_trace_judge.local.rules._registry import rule
from mast_trace_judge.local.texts import quote
from mast_trace_judge.verdict import Evidence

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mast_trace.trajectory import Step, Trajectory
    from mast_trace_judge.verdict import ModeFinding

_NEVER = re.compile(
    r"\b(?:do not|don't|never|must not|may not|mustn't|shall not|are not allowed to|is not allowed to)\s+(?:ever\s+)?"
    r"(?P<verbs>[a-z]+(?:(?:, (?:or )?| or | and | nor )[a-z]+)*)(?P<rest>[^.;!?]*)"
    r"|\bleave\s+(?P<left>[^.;,!?]{3,60}?)\s+(?:alone|untouched|unchanged|as (?:it is|they are))",
    re.IGNORECASE,
)
_NO = re.compile(
    r"\b(?:no|not (?:as |to |by |via |with |on |in )?an?) (?P<noun>[a-z]{3,})s?\b(?=(?P<rest>[^.;!?]*))",
    re.IGNORECASE,
)
_UNLESS = re.compile(
    r"\b(?:without|before|unless|until|except|if|when|while|more than|above|over|else|other than|than|only|just|yourself out|after"
    r"|otherwise|once|because|since|already|again|twice|at the same time|multiple)\b",
    re.IGNORECASE,
)
"""A ban with one of these holds under a condition."""
_WHEN = re.compile(r"\b(?:if|when|unless|until|while)\b", re.IGNORECASE)
_ANY = re.compile(
    r"\b(?:anything|it|them|yourself|yourselves|any|whatsoever)\b|^\W*$", re.IGNORECASE
)
_PATH = re.compile(r"(?<![\w/])[\w.-]*[\w-](?:/[\w./-]*|_\w+)")
_A_NUMBER = 5
"""Digits from which a figure is hardly computed from others by the agent itself, but the number of something."""
_LINKS = ("into", "to", "from", "via", "by", "in", "with", "for")
_ONE_WORD = re.compile(r"[a-z][a-z_-]{2,20}")
_NO_VALUE = frozenset(
    [
        "the",
        "this",
        "that",
        "any",
        "all",
        "each",
        "every",
        "and",
        "for",
        "not",
        "our",
        "your",
        "its",
        "their",
        "one",
        "what",
        "which",
        "same",
        "only",
        "then",
        "with",
        "from",
        "into",
        "you",
        "her",
        "his",
        "them",
        "him",
        "other",
        "new",
    ]
)


class _Ban(NamedTuple):
    """A ban: stems of verbs, with those of their objects and paths, or of things."""

    verbs: frozenset[str]
    objects: frozenset[str]
    paths: tuple[str, ...]
    of_all: bool
    text: str


@rule("1.2", contradicts=True)
def forbidden_action(trajectory: Trajectory) -> list[ModeFinding]:
    """A call does what the task or the agent's own system prompt rules out without a condition (heuristic).

    Definition: MAST 1.2 for a prompt, 1.1 for the task. The tool's name holds the verb that is ruled
    out, and name or arguments its object, if it has one; or a call that changes something has a path
    under the one that is to be left alone; or a short value in its arguments or in the object that
    it returned is the thing that the task does not want.
    """
    of_task = list(_bans(trajectory.task))
    own = {agent: list(_bans(text)) for agent, text in prompts(trajectory).items()}
    if not of_task and not any(own.values()):
        return []
    for step in trajectory.steps:
        if not is_tool(step) or not step.tool or failed(step):
            continue
        for code, bans in (("1.2", own.get(owner(step), [])), ("1.1", of_task)):
            ban = next((each for each in bans if _breaks(step, each, own=code == "1.2")), None)
            if ban is not None:
                where = "its system prompt" if code == "1.2" else "the task"
                why = f"{step.agent} calls {step.tool}, and {where} says: {ban.text[:160]}"
                told = [quote(step.arguments), first_line(step)]
                return [finding(code, 0.65, Evidence.HEURISTIC, why, [step], told)]
    return []


@rule("1.1", contradicts=True)
def argument_against_task(trajectory: Trajectory) -> list[ModeFinding]:
    """A call that changes something has an argument other than what the task gives for it (heuristic).

    Definition: MAST 1.1. The argument is a date that no text holds or implies, where none of the
    task's dates is an argument of the call; or a figure of five digits that no text holds and that is one of the
    task's with a digit changed or two exchanged; or a single word that no text holds, where the task
    has another word in the same place beside the argument's name ("into develop", ``into="main"``).
    """
    known = Known(trajectory)
    given = days(trajectory.task)
    for step in trajectory.steps:
        if acts(step) and not failed(step):
            wrong = _wrong_argument(step, trajectory.task, known, bool(given))
            if wrong:
                why = f"{step.agent} calls {step.tool} with {wrong}, which no text of the run holds; the task names another."
                return [
                    finding("1.1", 0.6, Evidence.HEURISTIC, why, [step], [quote(step.arguments)])
                ]
    return []


def _wrong_argument(step: Step, task: str, known: Known, dated: bool) -> str:
    used = arguments(step)
    stated = days(step.arguments)
    if dated and stated and all(not known.before(step).has_day(day) for day in stated):
        return step.arguments[stated[0].start : stated[0].end]
    for each in amounts(step.arguments):
        long = sum(sign.isdigit() for sign in each.literal) >= _A_NUMBER
        meant = [a for a in amounts(task) if long and slip(each.literal, a.literal)]
        if (
            meant
            and not each.readings & known.before(step).values
            and not any(a.literal in step.arguments for a in meant)
        ):
            return each.literal
    everything = ""
    for key, value in used.items():
        if not (isinstance(value, str) and _ONE_WORD.fullmatch(value)):
            continue
        there = _named_in_task(key, task)
        if not there or value in there or any(str(v).lower() in there for v in used.values()):
            continue
        everything = everything or " ".join(known.before(step).texts).lower()
        if not re.search(rf"\b{re.escape(value)}", everything):
            return f"{key}={value}"
    return ""


def _named_in_task(key: str, task: str) -> set[str]:
    """Return the words that stand beside an argument's name in the task as its value."""
    name = re.escape(key.replace("_", " "))
    behind = (
        re.findall(rf"\b{name} (?:the |an? )?([a-z][\w-]{{2,}})", task) if key in _LINKS else []
    )
    before = (
        re.findall(rf"\b(?:the|an?) ([a-z][\w-]{{2,}}) {name}\b", task) if key not in _LINKS else []
    )
    return {word.lower() for word in [*behind, *before]} - _NO_VALUE


def _bans(text: str) -> Iterator[_Ban]:
    for sentence in sentences(text[:4000]):
        if _WHEN.search(sentence):
            continue
        for match in _NEVER.finditer(sentence):
            if match["left"] is not None:
                yield _Ban(
                    frozenset(), frozenset(), tuple(_PATH.findall(match["left"])), False, sentence
                )
            elif not _UNLESS.search(match[0]):
                verbs = frozenset(
                    stem(each) for each in re.findall(r"[a-z]+", match["verbs"].lower())
                )
                rest = match["rest"]
                paths = tuple(_PATH.findall(rest))
                yield _Ban(
                    verbs - {"or", "and", "nor"},
                    stems(rest),
                    paths,
                    bool(_ANY.search(rest)),
                    sentence,
                )
        for match in _NO.finditer(sentence):
            if not _UNLESS.search(re.split(r"[,:]", match["rest"])[0]):
                yield _Ban(frozenset(), frozenset({stem(match["noun"])}), (), True, sentence)


def _breaks(step: Step, ban: _Ban, *, own: bool) -> bool:
    words = frozenset(stem(word) for word in name_words(step.tool))
    if ban.paths and acts(step):
        values = [str(each) for each in arguments(step).values() if len(str(each)) <= 200]
        if any(value.startswith(path) for value in values for path in ban.paths):
            return True
    if ban.verbs:
        about = words | stems(step.arguments[:2000])
        named = bool((about - ban.verbs) & _content(ban.objects))
        return bool(words & ban.verbs) and ((own and ban.of_all) or named)
    if own or not ban.of_all:
        return own and acts(step) and bool(words & ban.objects)
    result = loaded(step.text) if len(step.text) <= 4000 else None
    shown = [each for _, each in leaves(result)] if isinstance(result, dict) else []
    return any(
        isinstance(each, str) and _ONE_WORD.fullmatch(each) and stem(each) in ban.objects
        for each in [*arguments(step).values(), *shown]
    )


def _content(words: frozenset[str]) -> frozenset[str]:
    return frozenset(word for word in words if len(word) >= 3) - _NO_VALUE
