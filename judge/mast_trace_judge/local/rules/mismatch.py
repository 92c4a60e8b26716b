"""Mode 2.6, reasoning-action mismatch."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from mast_trace_judge.local.arithmetic import TOO_MANY, derived, in_other_unit, near, slip
from mast_trace_judge.local.figures import figures, known_values, names_unit, unit_behind, unit_of
from mast_trace_judge.local.rules._evidence import (
    finding,
    has_failed,
    is_said,
    is_tool,
    name_words,
)
from mast_trace_judge.local.rules._registry import Reach, rule
from mast_trace_judge.local.texts import quote, words
from mast_trace_judge.verdict import Evidence

if TYPE_CHECKING:
    from mast_trace.trajectory import Step, Trajectory
    from mast_trace_judge.local.figures import Figure
    from mast_trace_judge.verdict import ModeFinding

_CLAIM = re.compile(
    r"\bI(?: have|'ve)?(?: just| already)? (?:called|used|ran|run|executed|invoked|queried)"
    r"(?: the)? [`'\"]?([A-Za-z]\w*)[`'\"]?(?:\(\))?(?: (?:tool|function))?",
)
_REFERS = re.compile(
    r"\b(?:(?:tool|search|calculator|query|function|lookup|call|database|api|system)"
    r"(?:'s (?:result|output))? "
    r"(?:returned|returns|reported|reports|gave|gives|says|said|shows|showed)"
    r"|(?:result|output) of the (?:tool|call) (?:is|was)"
    r"|according to (?:the )?(?:tool|search|calculator|query|results?|output|database|data))\b"
    r"[^.\n]{0,60}?[-+\u2212]?(?=\d)",
    re.IGNORECASE,
)
_SURE = 0.85
"""Probability of a slip of the pen, which needs no failed run as evidence."""
_MOST_STATED = 1000
"""Number of figures of a message, the first ones, that are examined; a message with more is a
table.
"""
_A_VALUE = 120
"""Characters up to which a result is a value; numbers in longer texts have other meanings."""


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
    hold a number that is new: not one that follows from the known ones by one sum, factor, change
    of unit or rounding, however it is written (another unit has to be named somewhere). Exact where the result is short and the message says
    in so many words that a tool returned it. Where it is neither that nor a slip of a digit, it
    counts in runs that failed.
    """
    findings: list[ModeFinding] = []
    results: dict[str, list[_Result]] = defaultdict(list)
    known = known_values([trajectory.task])
    run_failed = has_failed(trajectory)
    for step in trajectory.steps:
        if is_tool(step):
            known |= known_values([step.arguments])
            if step.error is None:
                new = [found for found in figures(step.text) if not found.readings & known]
                results[step.agent].append(_Result(step, new))
        elif is_said(step):
            misstated = _misstated(step, results.pop(step.agent, []), known, trajectory.task)
            if misstated is not None and (run_failed or misstated.probability >= _SURE):
                findings.append(misstated)
        known |= known_values([step.text])
    return findings


class _Result(NamedTuple):
    """A tool's result, and the numbers in it that the run had not seen before."""

    step: Step
    figures: list[Figure]


def _misstated(
    step: Step, results: list[_Result], known: set[float], task: str
) -> ModeFinding | None:
    if len(known) > TOO_MANY:  # nothing is new then
        return None
    single = [found for found in results if len({each.literal for each in found.figures}) == 1]
    if not single:
        return None
    stated = figures(step.text)[:_MOST_STATED]
    unsaid = [
        (result, found[0])
        for result, found in single
        if not any(_says(step.text, each, result, found[0], task) for each in stated)
    ]
    new = [each for each in stated if _is_new(each, known)] if unsaid else []
    refers = {found.end() for found in _REFERS.finditer(step.text)} if new else set()
    repeats = len(single) == 1 or len(unsaid) < len(single)
    for result, figure in unsaid if new else ():
        slips = [
            each
            for each in new
            if repeats and slip(each.literal, figure.literal) and not _adds_to(figure, each, known)
        ]
        reported = [each for each in new if each.start in refers and _comparable(each, figure)]
        value = len(figure.literal) >= 2 and len(result.text) <= _A_VALUE
        if not slips and (len(results) > 1 or not value):
            continue
        chosen = (reported or slips or new)[0]
        sentence = quote(step.text, *chosen.span, limit=400)
        named = len(results) == 1 or _names(sentence, result, [found.step for found in results])
        exact = bool(reported) and named and value and bool(step.span_id)
        return finding(
            "2.6",
            0.9 if exact else _SURE if slips else 0.55,
            Evidence.EXACT if exact else Evidence.HEURISTIC,
            f"{step.agent} states {chosen.literal} where {result.tool} returned {figure.literal}.",
            [result, step],
            [quote(result.text, *figure.span), quote(step.text, *chosen.span)],
        )
    return None


def _says(text: str, figure: Figure, result: Step, own: Figure, task: str) -> bool:
    """Return whether a figure of a message is a result's: rounded, or in another unit.

    It is in another unit only where a unit is named: behind the figure, and not the one that the result
    has, or anywhere in the task, the call or the message.
    """
    pairs = [(value, of) for value in figure.readings for of in own.readings]
    if any(near(value, of) for value, of in pairs):
        return True
    if not any(in_other_unit(value, of) for value, of in pairs):
        return False
    unit = unit_behind(text, figure)
    if unit:
        return unit != unit_of(result.text, own)
    return names_unit([text, task, result.text, result.arguments, result.tool])


def _adds_to(addend: Figure, total: Figure, known: set[float]) -> bool:
    """Return whether a known number, twice or three times as well, makes one figure another, larger one."""
    terms = {value for value in known if value >= 10}
    rests = (whole - part for whole in total.readings for part in addend.readings)
    return any(rest > 0 and derived(rest, terms) for rest in rests)


def _comparable(one: Figure, other: Figure) -> bool:
    """Return whether two figures may mean the same thing: neither is ten times the other."""
    pairs = ((abs(a), abs(b)) for a in one.readings for b in other.readings)
    return any(a <= 10 * b and b <= 10 * a for a, b in pairs)


def _names(sentence: str, result: Step, results: list[Step]) -> bool:
    """Return whether a sentence has a word of the tool's name that no other tool of the turn has."""
    others = {word for other in results if other.tool != result.tool for word in _words(other)}
    return bool((_words(result) - others) & words(sentence))


def _words(result: Step) -> set[str]:
    return {word for word in name_words(result.tool) if len(word) > 2}


def _is_new(figure: Figure, known: set[float]) -> bool:
    """Return whether a number of two digits or more is neither known nor follows from known ones."""
    if len(figure.literal.strip("+-\u2212$ ")) < 2 or figure.readings & known:
        return False
    return not any(derived(value, known) for value in figure.readings)
