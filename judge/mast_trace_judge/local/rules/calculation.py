"""Mode 2.6, reasoning-action mismatch, where a stated result contradicts the figures it is computed from."""

from __future__ import annotations

import re
from collections import defaultdict
from itertools import islice
from typing import TYPE_CHECKING

from mast_trace_judge.local.acts import finding, has_failed, is_said, is_tool
from mast_trace_judge.local.arithmetic import derived, reachable
from mast_trace_judge.local.equations import equations
from mast_trace_judge.local.figures import figures, known_values
from mast_trace_judge.local.rules._registry import rule
from mast_trace_judge.local.texts import prose, quote
from mast_trace_judge.verdict import Evidence

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mast_trace.trajectory import Step, Trajectory
    from mast_trace_judge.local.equations import Equation
    from mast_trace_judge.local.figures import Figure
    from mast_trace_judge.verdict import ModeFinding

_DOUBTED = re.compile(
    r"\b(?:if|not|wrong|incorrect|mistake|error|instead|suppose|assum\w*|claim\w*|says?|said|stated"
    r"|example|rather than|typo|falsch|nicht|statt|wenn|f[uü]hrt|incorrecto|si|no|binary|modulo|hex"
    r"|about|approx\w*|roughly|around|nearly|almost|ca|rund|etwa|unos|aproximadamente)\b|n't\b"
    r"|[~\u2248\u4e0d\u9519\u7ea6\u5982\"\u201c\u00ab]",
    re.IGNORECASE,
)
"""Words of sentences that quote, doubt or round a figure."""
_TOTAL = re.compile(
    r"\b(?:grand total|totals?|sum|altogether|in all|combined|insgesamt|gesamt\w*|zusammen|summe"
    r"|en total|suma)\b[^\d.;\n]{0,40}|(?:\u5408\u8ba1|\u603b\u8ba1|\u603b\u5171|\u4e00\u5171)\D{0,12}",
    re.IGNORECASE,
)
_AVERAGE = re.compile(
    r"\b(?:averages?|averaged|averaging|the mean|durchschnitt\w*|im schnitt|promedio)\b"
    r"[^\d.;\n]{0,40}|\u5e73\u5747\D{0,12}",
    re.IGNORECASE,
)
_OTHER_KINDS = re.compile(
    r"[%\u6298\u7a0e]|\b(?:percent|per|each|rate|tax|vat|discount|fee|tip|budget|left|remain\w*"
    r"|saves?|saved|savings?|includes?|included|including|excludes?|excluded|excluding|limit|without"
    r"|prozent|steuer|mwst|rabatt|pro|je|ohne|inkl\w*|por ciento"
    r"|descuento|impuesto\w*|nights?|days?|people|times|twice|double|half)\b",
    re.IGNORECASE,
)
"""Words of sentences whose total may include more than the figures that tools returned."""
_SURE, _LIKELY = 0.8, 0.6
_MOST = 8
"""Largest number of figures from which a total is recomputed."""
_A_VALUE = 120
"""Length up to which a tool's result counts as a value; longer results hold other figures as well."""
_LACKS = {"total": "is no sum of", "average": "lies outside of"}
_GAP = 4
"""Signs between the words that announce a figure and the figure."""
_SIGNS = " $\u20ac\u00a3"
_SMALL = 31
"""Largest whole number that counts as a quantity, such as nights, people or months."""

_CYCLES = (7, 12, 24, 60, 360)
"""Days, hours, minutes and degrees after which counting begins anew."""
_HOURS = re.compile(r"h$|hr|hour|std|stunde|hora|heure")
_LABELS = 20
"""Times the sum of small numbers from which what stands behind them is no sum of theirs."""


@rule("2.6")
def false_equation(trajectory: Trajectory) -> list[ModeFinding]:
    """An agent's equation of figures that the run holds is false, and its result is the answer.

    Definition: MAST 2.6. An equation counts if all its figures are small quantities or come from
    the task or from earlier texts, arguments or results, if its sentence expresses no doubt, if the
    last message repeats its result, and if neither its step nor a later one gives the right result.
    The finding names the first agent that states it. Arithmetic alone shows that an equation is
    false, but a run may still reach its goal; so the finding is exact in runs that failed, and
    heuristic elsewhere.
    """
    last = next((step for step in reversed(trajectory.steps) if is_said(step)), None)
    if last is None:
        return []
    answered: set[float] | None = None
    stated: dict[tuple[str, ...], tuple[Step, Equation]] = {}
    for step in trajectory.steps:
        for equation in equations(prose(step.text)) if is_said(step) else ():
            if equation.holds() or _means_another_thing(equation):
                continue
            if _DOUBTED.search(quote(step.text, *equation.span, limit=300)):
                continue
            figures_of = (*equation.terms, equation.result)
            spelling = (*equation.operators, *(each.literal for each in figures_of))
            first = stated.setdefault(spelling, (step, equation))
            answered = known_values([last.text]) if answered is None else answered
            if (
                equation.result.readings & answered
                and _comes_from(equation, trajectory, step)
                and not _corrected(equation, trajectory.steps[step.index :])
            ):
                return [_false(trajectory, *first)]
    return []


def _means_another_thing(equation: Equation) -> bool:
    """Return whether an equation may be of whole things, of hours that begin anew, or of positions whose amounts are added."""
    small = all(abs(value) <= _SMALL for term in equation.terms for value in term.as_one)
    stated = {abs(each) for each in equation.result.as_one}
    right = abs(equation.value())
    if equation.operators == ("/",) and equation.unit and stated & {right // 1, right // 1 + 1}:
        return True  # whole boxes
    anew = any((right - each) % cycle == 0 and each < cycle for each in stated for cycle in _CYCLES)
    if equation.operators == ("-",) and _HOURS.match(
        equation.unit
    ):  # "9-5 = 8 hours", from nine to five
        anew = anew or any((right + each) % cycle == 0 for each in stated for cycle in (12, 24))
    return small and (anew or min(stated) > _LABELS * max(right, 1))


def _comes_from(equation: Equation, trajectory: Trajectory, step: Step) -> bool:
    """Return whether each figure on the left occurs earlier in the run or is a quantity."""
    before = trajectory.steps[: step.index]
    texts = [trajectory.task, *(text for each in before for text in (each.text, each.arguments))]
    known = known_values(texts)
    return all(term.readings & known or _is_quantity(term) for term in equation.terms)


def _false(trajectory: Trajectory, step: Step, equation: Equation) -> ModeFinding:
    exact = has_failed(trajectory) and bool(step.span_id)
    return finding(
        "2.6",
        0.9 if exact else _SURE,
        Evidence.EXACT if exact else Evidence.HEURISTIC,
        f"{step.agent} gives {equation.result.literal} where the figures make "
        f"{equation.value():.10g}.",
        [step],
        [quote(step.text, *equation.span)],
    )


def _corrected(equation: Equation, steps: Sequence[Step]) -> bool:
    """Return whether the right result is given in the same step or in a later one."""
    right = abs(equation.value())
    return any(
        abs(abs(value) - right) <= 0.005 * right
        for step in steps
        for value in known_values([step.text])
        if value not in equation.result.readings
    )


@rule("2.6")
def wrong_total(trajectory: Trajectory) -> list[ModeFinding]:
    """An agent gives a total or an average that cannot follow from the figures that tools returned.

    Definition: MAST 2.6 (heuristic). It examines messages after tools returned a few figures, each in
    a short result, if the total is the message's only new figure and the run's last message repeats
    it; the finding names the first agent that states it. The total is wrong if it is no sum of any of
    the figures, each multiplied by any quantity that the run names. The average is wrong if it lies
    outside the range of the figures; within the range it may be a weighted average.
    """
    last = next((step for step in reversed(trajectory.steps) if is_said(step)), None)
    told = _Told(trajectory)
    returned = False
    for step in trajectory.steps if last is not None else ():
        if is_tool(step):
            if not _is_value(step):
                return []  # its figures may be part of every later total
            returned = True
        if not (returned and is_said(step)):
            continue
        text = prose(step.text)
        announced = any(_announces(pattern, text) for pattern in (_TOTAL, _AVERAGE))
        found = _unmade(told, step) if announced else None
        if last is not None and found is not None and found[0].readings & known_values([last.text]):
            claimed, what = found
            why = (
                f"{step.agent} gives {claimed.literal} as the {what}, which {_LACKS[what]} the figures that "
                "tools returned."
            )
            quoted = [quote(step.text, *claimed.span)]
            return [finding("2.6", _LIKELY, Evidence.HEURISTIC, why, [step], quoted)]
    return []


class _Told:
    """The figures of a run before a step, kept from one message to the next: a long run is read once.

    Attributes:
        given: the numbers of the task and of the arguments of tools.
        known: the numbers of all texts.
        parts: the figures that tools brought into the run, by step and position.
        tools: their names.
    """

    def __init__(self, trajectory: Trajectory) -> None:
        self.given = known_values([trajectory.task])
        self.known: set[float] = set()
        self.parts: dict[tuple[int, int], Figure] = {}
        self.tools: set[str] = set()
        self._steps = iter(trajectory.steps)
        self._read = 0
        self._places: defaultdict[float, list[tuple[int, int]]] = defaultdict(list)

    def before(self, step: Step) -> None:
        """Read on up to a step."""
        for each in islice(self._steps, step.index - self._read):
            self.known |= known_values([each.text])
            if is_tool(each):
                self._add(each)
        self._read = step.index

    def _add(self, step: Step) -> None:
        self.tools.add(step.tool)
        for value in known_values([step.arguments]) - self.given:
            self.given.add(value)
            for place in self._places.pop(value, ()):
                self.parts.pop(place, None)
        for figure in figures(step.text):
            if not figure.readings & self.given:
                self.parts[step.index, figure.start] = figure
                for value in figure.readings:
                    self._places[value].append((step.index, figure.start))


def _unmade(told: _Told, step: Step) -> tuple[Figure, str] | None:
    """Return a message's total or average that does not follow from the results, and its kind."""
    told.before(step)
    if not 2 <= len(told.parts) <= _MOST:
        return None
    given, parts = told.given, [max(each.as_one) for each in told.parts.values()]
    claimed = _only_new(step, told) if min(parts) > 0 else None
    if claimed is None:
        return None
    sentence = quote(step.text, *claimed.span, limit=300)
    if _DOUBTED.search(sentence) or _OTHER_KINDS.search(sentence):
        return None
    if claimed.start in _announces(_TOTAL, prose(step.text)):
        factors = {value for value in given if 1 < value <= _SMALL}
        return (claimed, "total") if _no_total(claimed, parts, factors) else None
    if len(told.tools) == 1 and claimed.start in _announces(_AVERAGE, prose(step.text)):
        return (claimed, "average") if _no_average(claimed, parts) else None
    return None


def _only_new(last: Step, told: _Told) -> Figure | None:
    """Return the only new figure of a message if it is an amount that no known figures derive."""
    seen = (told.given, told.known)
    new = [each for each in figures(last.text) if all(map(each.readings.isdisjoint, seen))]
    if len(new) != 1 or not _is_amount(new[0]):
        return None
    known = told.given | told.known
    return None if any(derived(value, known) for value in new[0].readings) else new[0]


def _no_total(claimed: Figure, parts: Sequence[float], factors: set[float]) -> bool:
    whole = sum(parts)
    return all(
        0.5 < value / whole < 2.0 and not reachable(value, parts, factors)
        for value in claimed.as_one
    )


def _no_average(claimed: Figure, parts: Sequence[float]) -> bool:
    low, high = min(parts), max(parts)
    return all(low / 3 < value < low or high < value < 3 * high for value in claimed.as_one)


def _is_value(step: Step) -> bool:
    """Return whether a tool returned something short."""
    return step.error is None and bool(step.text.strip()) and len(step.text) <= _A_VALUE


def _announces(pattern: re.Pattern[str], text: str) -> set[int]:
    """Return the positions of figures right behind words that announce them, such as "total"."""
    ends = [match.end() for match in pattern.finditer(text)]
    starts = {each.start for each in figures(text)} if ends else set()
    found = set()
    for end in ends:
        signs = text[end : end + _GAP]
        place = end + len(signs) - len(signs.lstrip(_SIGNS))
        found |= {place, end} & starts
    return found


def _is_quantity(figure: Figure) -> bool:
    return figure.literal.isdigit() and max(figure.readings) <= _SMALL


def _is_amount(figure: Figure) -> bool:
    return min(figure.readings) > _SMALL or "." in figure.literal or "," in figure.literal
