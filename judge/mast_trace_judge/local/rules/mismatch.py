"""Mode 2.6, reasoning-action mismatch."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from mast_trace_judge.local.rules._evidence import finding, is_said, is_tool, name_words
from mast_trace_judge.local.rules._registry import Reach, rule
from mast_trace_judge.local.texts import number, numbers, quote, values, words
from mast_trace_judge.verdict import Evidence

if TYPE_CHECKING:
    from mast_trace.trajectory import Step, Trajectory
    from mast_trace_judge.verdict import ModeFinding

_CLAIM = re.compile(
    r"\bI(?: have|'ve)?(?: just| already)? (?:called|used|ran|run|executed|invoked|queried)"
    r"(?: the)? [`'\"]?([A-Za-z]\w*)[`'\"]?(?:\(\))?(?: (?:tool|function))?",
)
_REFERS = re.compile(
    r"\b(?:(?:tool|search|calculator|query|function|lookup|call|it|database|api|system)"
    r"(?:'s (?:result|output))? "
    r"(?:returned|returns|reported|reports|gave|gives|says|said|shows|showed)"
    r"|(?:result|output|value|answer|figure)s? (?:is|was|are|were|of the (?:tool|call) (?:is|was))"
    r"|according to (?:the )?(?:tool|search|calculator|query|results?|output|database|data))\b"
    r"[^.\n]{0,60}?(?=\d)",
    re.IGNORECASE,
)
_SMALL = 31
"""Factors up to this are ordinary in sums: days, people, months."""
_TOO_MANY = 400
_A_VALUE = 120
"""Characters up to which a result is a value; numbers in longer texts are among other things."""


@rule("2.6", Reach.BACK)
def claimed_call(trajectory: Trajectory) -> list[ModeFinding]:
    """An agent says that it called a tool which nobody had called.

    Definition: MAST 2.6, "discrepancy between the logical reasoning process and the actual actions
    taken by the agent". Exact where the name is that of a tool that the run does use at another
    time; heuristic where it only looks like one.
    """
    tools = {step.tool: step.index for step in reversed(trajectory.steps) if step.tool}
    if not tools:
        return []
    done = ""
    for step in trajectory.steps:
        if step.kind.value == "tool":
            done += f" {step.tool} {step.arguments}"
        if not is_said(step):
            continue
        for match in _CLAIM.finditer(step.text):
            name = match[1]
            known = name in tools
            if not (known or "_" in name or match[0].endswith(("()", "tool", "function"))):
                continue
            if (known and tools[name] < step.index) or name in done or name in trajectory.task:
                continue
            exact = known and bool(step.span_id)
            return [
                finding(
                    "2.6",
                    0.85 if exact else 0.5,
                    Evidence.EXACT if exact else Evidence.HEURISTIC,
                    f"{step.agent} says that it called {name}, and no such call came before.",
                    [step],
                    [quote(step.text, *match.span())],
                )
            ]
    return []


@rule("2.6", Reach.BACK)
def misstated_result(trajectory: Trajectory) -> list[ModeFinding]:
    """An agent states another number than the tool result that it speaks of.

    Definition: MAST 2.6. Looks at the first message of an agent after its own tool runs. A result
    that brings a single number into the run must be missing from the message, and the message must
    hold a number that is new: not one that follows from the known ones by one sum, factor or
    rounding. Exact where the result is short and the message says in so many words that it reports
    it.
    """
    findings: list[ModeFinding] = []
    results: dict[str, list[_Result]] = defaultdict(list)
    known = values([trajectory.task])
    for step in trajectory.steps:
        if is_tool(step):
            known |= values([step.arguments])
            if step.error is None:
                new = [match for match in numbers(step.text) if number(match[0]) not in known]
                results[step.agent].append(_Result(step, new))
        elif is_said(step):
            misstated = _misstated(step, results.pop(step.agent, []), known)
            findings += [misstated] if misstated else []
        known |= values([step.text])
    return findings


class _Result(NamedTuple):
    """A tool's result, and the numbers in it that the run had not seen before."""

    step: Step
    figures: list[re.Match[str]]


def _misstated(step: Step, results: list[_Result], known: set[float]) -> ModeFinding | None:
    if len(known) > _TOO_MANY:  # nothing is new then
        return None
    single = [found for found in results if len({match[0] for match in found.figures}) == 1]
    if not single:
        return None
    stated = numbers(step.text)
    said = {number(match[0]) for match in stated}
    unsaid = [
        (result, figures)
        for result, figures in single
        if not any(_near(value, number(figures[0][0])) for value in said)
    ]
    new = [match for match in stated if _is_new(match[0], known)] if unsaid else []
    refers = {found.end() for found in _REFERS.finditer(step.text)} if new else set()
    for result, figures in unsaid if new else ():
        figure = figures[0][0]
        slips = [match for match in new if _slip(match[0], figure)]
        reported = [match for match in new if match.start() in refers]
        value = len(figure) >= 2 and len(result.text) <= _A_VALUE
        if not slips and (len(results) > 1 or not value):
            continue
        match = (reported or slips or new)[0]
        sentence = quote(step.text, *match.span(), limit=400)
        named = len(results) == 1 or _names(sentence, result, [found.step for found in results])
        exact = bool(reported) and named and value and bool(step.span_id)
        return finding(
            "2.6",
            0.9 if exact else 0.85 if slips else 0.55,
            Evidence.EXACT if exact else Evidence.HEURISTIC,
            f"{step.agent} states {match[0]} where {result.tool} returned {figure}.",
            [result, step],
            [quote(result.text, *figures[0].span()), quote(step.text, *match.span())],
        )
    return None


def _names(sentence: str, result: Step, results: list[Step]) -> bool:
    """Whether a sentence has a word of the tool's name that no other tool of the turn has."""
    others = {word for other in results if other.tool != result.tool for word in _words(other)}
    return bool((_words(result) - others) & words(sentence))


def _words(result: Step) -> set[str]:
    return {word for word in name_words(result.tool) if len(word) > 2}


def _is_new(literal: str, known: set[float]) -> bool:
    """Whether a number of two digits or more is neither known nor follows from known ones."""
    value = number(literal)
    return len(literal.strip("+-")) >= 2 and value not in known and not _derived(value, known)


def _near(one: float, other: float) -> bool:
    """Whether one number is the other, rounded or in another unit."""
    if one == other:
        return True
    if not one or not other:
        return False
    ratio = abs(one / other)
    while ratio >= 10**0.5:
        ratio /= 10
    while ratio < 10**-0.5:
        ratio *= 10
    return abs(ratio - 1) < 0.01


def _derived(value: float, known: set[float]) -> bool:
    """Whether a number follows from known ones by one step of arithmetic.

    Sums are taken of known numbers, products also of a known one with a small whole number. Where
    very many numbers are known, nothing new can be told from a sum of them.
    """
    if len(known) > _TOO_MANY or any(_near(value, a) for a in known):
        return True
    ordered = {round(a, 6) for a in known}
    for a in known:
        if {round(value - a, 6), round(a - value, 6)} & ordered:
            return True
    factors = known | {float(i) for i in range(2, _SMALL)}
    wanted = {round(w, 6) for f in factors if f for w in (value / f, value * f)}
    return bool(wanted & ordered)


def _slip(one: str, other: str) -> bool:
    """Whether two figures of three digits or more differ by one digit or two exchanged ones."""
    a, b = one.replace(",", ""), other.replace(",", "")
    if len(a) != len(b) or sum(c.isdigit() for c in a) < 3 or a == b:
        return False
    different = [i for i in range(len(a)) if a[i] != b[i]]
    if len(different) == 1:
        return True
    return len(different) == 2 and sorted(a) == sorted(b) and different[1] - different[0] == 1
