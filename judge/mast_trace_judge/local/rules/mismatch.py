"""Mode 2.6, reasoning-action mismatch."""

from __future__ import annotations

import re
from collections import defaultdict
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

from mast_trace_judge.local.acts import (
    doubted,
    finding,
    has_failed,
    holds,
    is_said,
    is_tool,
    name_words,
)
from mast_trace_judge.local.arithmetic import (
    COUNTED,
    TOO_MANY,
    chance_of,
    derived,
    derived_twice,
    in_other_unit,
    near,
    slip,
)
from mast_trace_judge.local.dates import as_date, days
from mast_trace_judge.local.figures import (
    MONEY,
    figures,
    in_unit,
    known_values,
    names_unit,
    unit_behind,
    unit_of,
)
from mast_trace_judge.local.rules._registry import Reach, rule
from mast_trace_judge.local.stated import arguments, in_dates
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
_ADDS = re.compile(
    r"\b(?:with|plus|includ\w*|add\w*|extra|tax\w*|total|together|fees?|discount|less|mit|plus|inkl\w*|zzgl"
    r"|con|m[aá]s|avec)\b|[+]",
    re.IGNORECASE,
)
"""Words of sentences whose figure may be a result's and a round amount."""
_PLANNED = re.compile(r"\b(?:after|when|once|as soon as)\b[^.;!?]*$", re.IGNORECASE)
_CLAUSE = 200
"""Characters before a claim in which its condition may stand."""
_SURE = 0.85
"""Probability of a slip of the pen, which needs no failed run as evidence."""
_MOST_STATED = 1000
"""Number of figures of a message, the first ones, that are examined; a message with more is a
table.
"""
_UNTOLD = 0.45
"""Probability of another number in a run that failed, which may have nothing to do with the tool."""
_CHANCE = 0.01
"""Chance from which on an unrelated number may be as near to a result's as the stated one."""
_YEARS = {float(year) for year in range(1900, 2101)}
_FEW = 12
"""New numbers of a result above which it is a listing."""
_NEVER_CONVERTED = MONEY | {"%"}
_DIVIDES = "\n,;{}|()"
_A_VALUE = 120
"""Characters up to which a result is a value; numbers in longer texts have other meanings."""

_DAYS_OF = {
    **dict.fromkeys(("day", "night", "tag", "d\u00eda", "dia", "jour"), 1.0),
    **dict.fromkeys(("week", "wk", "woche", "wochen", "semana"), 7.0),
    **dict.fromkeys(("month", "monat", "monate", "mes", "mese"), 30.4),
    **dict.fromkeys(("year", "yr", "jahr", "jahre", "a\u00f1o"), 365.25),
}
"""Days of a unit of time."""
_MOST_DATES, _ROUNDED = 40, 0.05
"""Dates of a run whose distances are looked at, and by how much a distance is rounded."""


@rule("2.6", Reach.BACK)
def claimed_call(trajectory: Trajectory) -> list[ModeFinding]:
    """An agent says that it called a tool which nobody had called.

    Definition: MAST 2.6, "discrepancy between the logical reasoning process and the actual actions
    taken by the agent". Exact where the name is that of a tool that the run does use at a later
    time and is written as a name; heuristic where it only looks like one. A claim that is denied, quoted or made
    of another case is none.
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
            planned = _PLANNED.search(step.text[max(0, match.start() - _CLAUSE) : match.start()])
            if planned or doubted(step.text, *match.span(1)):
                continue
            # A plain word may be meant as a word: "I used search terms".
            marked = (
                "_" in name
                or match[0] != match[0].rstrip("`'\")")
                or match[0].endswith(("tool", "function"))
            )
            exact = known and marked and bool(step.span_id)
            return [
                finding(
                    "2.6",
                    0.85 if exact else 0.5,
                    Evidence.EXACT if exact else Evidence.HEURISTIC,
                    f"{step.agent} says that it called {name}, and no such call is recorded before.",
                    [step],
                    [quote(step.text, *match.span())],
                )
            ]
    return []


@rule("2.6", Reach.BACK)
def misstated_result(trajectory: Trajectory) -> list[ModeFinding]:
    """An agent states another number than the tool result that it speaks of.

    Definition: MAST 2.6. Looks at the first message with a figure after an agent's own tool runs. A result
    that brings a few numbers into the run must have one that is missing from the message, and the message
    must hold a number that is new: not one that follows from the known ones by one sum, factor, change
    of unit or rounding, however it is written (another unit has to be named somewhere). No sentence that
    denies, doubts or quotes the number, or speaks of another time, counts. Words decide nothing else: exact is a
    number in the same unit that follows by no two steps of arithmetic either, and that is the
    result's with digits miswritten, which one in a hundred unrelated numbers would be at most; or it stands
    in a sentence that gives it as the tool's. A miswritten digit that is no exchange must also stand beside
    words of the result, and so must every number where the result has several. Where it is neither that nor a
    slip of a digit, it counts in runs that failed.
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
        elif is_said(step) and figures(step.text):
            misstated = _misstated(trajectory, step, results.pop(step.agent, []), known)
            if misstated is not None and (run_failed or misstated.probability >= _SURE):
                findings.append(misstated)
        known |= known_values([step.text])
    return findings


class _Result(NamedTuple):
    """A tool's result, and the numbers in it that the run had not seen before."""

    step: Step
    figures: list[Figure]

    @property
    def is_single(self) -> bool:
        """True if it brings one number into the run."""
        return len({each.literal for each in self.figures}) == 1


def _misstated(
    trajectory: Trajectory, step: Step, results: list[_Result], known: set[float]
) -> ModeFinding | None:
    if len(known) > TOO_MANY:  # nothing is new then
        return None
    told = [found for found in results if 0 < len(found.figures) <= _FEW]
    dates = in_dates(step.text)
    stated = [each for each in figures(step.text)[:_MOST_STATED] if each.start not in dates]
    unsaid = [
        (result, figure)
        for result in told
        for figure in result.figures[: 1 if result.is_single else _FEW]
        if not any(_says(step.text, each, result.step, figure, trajectory.task) for each in stated)
    ]
    new = [
        each
        for each in stated
        if unsaid and not _is_known(each, known) and not doubted(step.text, *each.span)
    ]
    refers = {found.end() for found in _REFERS.finditer(step.text)} if new else set()
    one = [result for result in told if result.is_single]
    repeats = len(one) == 1 or sum(result.is_single for result, _ in unsaid) < len(one)
    for result, figure in unsaid if new else ():
        fitting = [
            each
            for each in new
            if _fits(step, each, result.step, figure)
            and _is_new(each, known, figure)
            and not _is_span(trajectory, step, each)
        ]
        slips = [each for each in fitting if _is_slip(step, each, figure, known)]
        exchanged = [each for each in slips if _is_exchange(each, figure)]
        beside = [
            each
            for each in slips
            if _is_beside(step, each, result, figure, results)
            or (each in exchanged and _is_of_call(step, each, result, results))
        ]
        sole = [each for each in exchanged if _in_one_unit(step, each, result.step, figure)]
        if not (repeats and result.is_single):
            slips = [each for each in slips if each in beside or each in sole]
        near_by = [
            each
            for each in exchanged
            if (each in beside or each in sole)
            and _chance(each, figure) * len(new) * len(unsaid) <= _CHANCE
        ]
        value = result.is_single and len(figure.literal) >= 2 and len(result.step.text) <= _A_VALUE
        reported = [
            each
            for each in fitting
            if value and _comparable(each, figure) and _is_reported(step, each, result, refers)
        ]
        if not slips and (len(results) > 1 or not value or not fitting):
            continue
        chosen = (near_by or reported or slips or fitting)[0]
        sentence = quote(step.text, *chosen.span, limit=400)
        named = len(results) == 1 or _names(sentence, result.step, [each.step for each in results])
        follows = chosen in near_by or (chosen in reported and named)
        exact = follows and bool(step.span_id) and not _may_follow(trajectory, step, chosen)
        why = (
            f"{step.agent} states {chosen.literal} where {result.step.tool} returned {figure.literal}."
            if exact or slips
            else f"{step.agent} states {chosen.literal}, which no step of arithmetic makes of what came "
            f"before, and not the {figure.literal} that {result.step.tool} returned."
        )
        return finding(
            "2.6",
            0.9 if exact else _SURE if slips else _UNTOLD,
            Evidence.EXACT if exact else Evidence.HEURISTIC,
            why,
            [result.step, step],
            [quote(result.step.text, *figure.span), quote(step.text, *chosen.span)],
        )
    return None


def _is_span(trajectory: Trajectory, step: Step, each: Figure) -> bool:
    """Return whether a figure is the time between two dates of the run, in the unit that stands behind it."""
    length = _DAYS_OF.get(unit_behind(step.text, each))
    if length is None:
        return False
    held = (
        trajectory.task,
        *(f"{one.arguments} {one.text}" for one in trajectory.steps[: step.index + 1]),
    )
    read = {reading for text in held for day in days(text) for reading in day.readings}
    year = max((each[0] for each in read), default=0)
    told = {as_date((each[0] or year, *each[1:])) for each in read}
    dates = sorted(day for day in told if day is not None)[:_MOST_DATES]
    gaps = {(later - one).days / length for one, later in combinations(dates, 2)}
    return any(abs(value - gap) <= 1 / length + _ROUNDED for value in each.as_one for gap in gaps)


def _fits(step: Step, each: Figure, result: Step, figure: Figure) -> bool:
    """Return whether two figures have no different units."""
    units = {in_unit(step.text, each), in_unit(result.text, figure)} - {""}
    return len(units) <= 1


def _in_one_unit(step: Step, each: Figure, result: Step, figure: Figure) -> bool:
    """Return whether a figure is in the unit of a result's, which stands beside that or in the result."""
    unit, of = in_unit(step.text, each), in_unit(result.text, figure)
    return bool(unit) and (unit == of or (not of and unit in result.text.lower()))


def _is_slip(step: Step, each: Figure, figure: Figure, known: set[float]) -> bool:
    """Return whether a figure may be another one miswritten; a round amount that is added changes one digit, too."""
    literals = each.literal, figure.literal
    pairs = [literals, *((f"{a:.10g}", f"{b:.10g}") for a in each.as_one for b in figure.as_one)]
    if not any(slip(*pair) for pair in pairs):
        return False
    added = _ADDS.search(quote(step.text, *each.span, limit=400))
    return _is_exchange(each, figure) or not (added or _adds_to(figure, each, known))


def _is_exchange(one: Figure, other: Figure) -> bool:
    """Return whether two figures have the same digits in another order, and are miswritten for each other."""
    return any(
        sorted(f"{a:.10g}") == sorted(f"{b:.10g}") and slip(f"{a:.10g}", f"{b:.10g}")
        for a in one.as_one
        for b in other.as_one
    )


def _chance(one: Figure, other: Figure) -> float:
    return min(chance_of(a, b) for a in one.as_one for b in other.as_one)


def _is_beside(
    step: Step, each: Figure, result: _Result, figure: Figure, results: list[_Result]
) -> bool:
    """Return whether a figure stands beside words that the result has beside its own, and beside no other."""
    said = words(quote(step.text, *each.span, limit=400))
    own = _words_at(result.step, figure)
    others = {
        word
        for other in results
        for of in other.figures[:_FEW]
        if (other, of) != (result, figure)
        for word in _words_at(other.step, of)
    }
    return bool(said & (own - others))


def _is_of_call(step: Step, each: Figure, result: _Result, results: list[_Result]) -> bool:
    """Return whether a figure's sentence has an argument of a result's call, and this is no argument of another one."""
    said = quote(step.text, *each.span, limit=400).lower()
    own, others = set[str](), set[str]()
    for of in results:
        values = {str(value).lower() for value in arguments(of.step).values()}
        (own if of is result else others).update(values)
    return any(len(value) > 1 and holds(said, value) for value in own - others)


def _words_at(result: Step, figure: Figure) -> set[str]:
    """Return the words of the tool's name and those around a figure of its result."""
    start = max(result.text.rfind(mark, 0, figure.start) for mark in _DIVIDES)
    ends = [place for mark in _DIVIDES if (place := result.text.find(mark, figure.end)) >= 0]
    return _words(result) | {
        word
        for told in words(result.text[start + 1 : min(ends, default=len(result.text))])
        for word in name_words(told)
        if len(word) > 3
    }


def _is_reported(step: Step, each: Figure, result: _Result, refers: set[int]) -> bool:
    """Return whether a sentence gives a figure as the tool's: in such words, or with its name."""
    tool = result.step.tool
    sentence = quote(step.text, *each.span, limit=400)
    return each.start in refers or ("_" in tool and tool.lower() in sentence.lower())


def _may_follow(trajectory: Trajectory, step: Step, each: Figure) -> bool:
    """Return whether two steps of arithmetic may make a figure of what the run held before it."""
    before = trajectory.steps[: step.index]
    texts = [trajectory.task, *(text for one in before for text in (one.text, one.arguments))]
    held = {value for text in texts for figure in figures(text) for value in figure.as_one}
    return any(derived_twice(value, held) for value in each.as_one)


def _says(text: str, figure: Figure, result: Step, own: Figure, task: str) -> bool:
    """Return whether a figure of a message is a result's: rounded, or in another unit.

    It is in another unit only where a unit is named: behind the figure, and not the one that the result
    has, or anywhere in the task, the call or the message.
    """
    pairs = [(value, of) for value in figure.readings for of in own.readings]
    if any(_rounds(value, of) for value, of in pairs):
        return True
    if any(near(value, of) for value, of in pairs) and not _is_exchange(figure, own):
        return True
    if not any(in_other_unit(value, of) for value, of in pairs):
        return False
    measured, of = in_unit(text, figure), in_unit(result.text, own)
    if {measured, of} & _NEVER_CONVERTED or (measured and measured == of):
        return False
    unit = unit_behind(text, figure)
    if unit:
        return unit != unit_of(result.text, own)
    return names_unit([text, task, result.text, result.arguments, result.tool])


def _rounds(value: float, of: float) -> bool:
    """Return whether a value is another one rounded to fives, tens or hundreds, or down to tens."""
    if value in {round(of, -1), round(of, -2)}:
        return True
    return not value % 5 and (abs(value - of) < 2.5 or (not value % 10 and 0 < of - value < 10))


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


def _is_new(figure: Figure, known: set[float], meant: Figure) -> bool:
    """Return whether a number of two digits or more is neither known nor follows from known ones.

    One that has the digits of ``meant`` is near that, and no rounding of it; it is made of no year either, and of no
    factor that nobody has named but the small ones. A sum with ``meant`` makes it, too.
    """
    if len(figure.literal.strip("+-\u2212$ ")) < 2 or _is_known(figure, known):
        return False
    if _is_exchange(figure, meant):
        known = known - meant.readings - _YEARS
        changed = {round(abs(a - b), 6) for a in figure.as_one for b in meant.as_one}
        if any(round(abs(each), 6) in changed for each in known):
            return False
        return not any(derived(value, known, COUNTED) for value in figure.as_one)
    return not any(derived(value, known) for value in figure.as_one)


def _is_known(figure: Figure, known: set[float]) -> bool:
    """Return whether a number is known; one that may be a list is, if all its parts are."""
    parts = figure.readings - figure.as_one
    return bool(figure.as_one & known) or (bool(parts) and parts <= known)
