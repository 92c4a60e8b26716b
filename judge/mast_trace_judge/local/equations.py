"""Finds equations of plain figures in a text, such as ``120 + 80 = 210``, and checks them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import islice, product
from typing import TYPE_CHECKING

from mast_trace_judge.local.arithmetic import in_other_unit, near
from mast_trace_judge.local.dates import days
from mast_trace_judge.local.figures import MONEY, Figure, figures, unit_behind

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_OPERATORS = {
    **dict.fromkeys("+", "+"),
    **dict.fromkeys("-\u2212\u2013", "-"),
    **dict.fromkeys("*x\u00d7\u00b7", "*"),
    **dict.fromkeys("/\u00f7", "/"),
}
_EQUALS = frozenset({"=", "=="})
_GAP = re.compile(
    r"\s*(?:[$\u20ac\u00a3\u00a5\u20b9]|EUR|USD|GBP|euros?|dollars?)?"
    r"\s*(==?|[-+*/x\u00d7\u00b7\u00f7\u2212\u2013])"
    r"\s*[$\u20ac\u00a3\u00a5\u20b9]?\s*"
)
"""The text between two figures of an equation: an operator, and signs of currencies."""
_OPENS = re.compile(
    r"(?:^|[\n(,;.|>]|(?<!\d):|\*\*|\b(?:is|are|was|were|total|totals|sum|so|therefore|thus|hence|makes|gives|get"
    r"|ist|sind|also|zusammen|macht|es|son|total de)|[\u662f\u4e3a\uff1a\uff0c])"
    r"[ \t]*(?:[-*\u2022][ \t]+)?[$\u20ac\u00a3\u00a5\u20b9]?[ \t]*$"
)
"""The text that may precede an equation; after other words, its first figure may be part of a longer term."""
_GOES_ON = re.compile(
    r":\d|[,.]\w|\s*(?:[-+*/^=%\u00d7\u00b7\u00f7\u2212\u2013]|\\|k\b|m\b|bn\b|thousand|million|billion|mod\b|hundred"
    r"|dozen|tausend|Million|Milliarde|mil\b|mill|e\d|\u4e07|\u4ebf|\u5343|\.\.\.|\u2026|remainder|rem\b|r\b)"
)
"""Text behind an equation that continues it, so that the figure on the right is not the whole result."""
_WIDEST = 20
"""Characters between two figures of an equation: an operator with a currency."""
_MOST_READINGS = 64
"""Combinations of readings that are checked; an equation with so many is assumed to hold."""
_LONGEST = 12
"""Number of figures up to which an equation is checked."""


@dataclass(frozen=True)
class Equation:
    """Figures that are joined by operators, and the figure that the text gives as their result.

    Attributes:
        terms: the figures on the left.
        operators: the operators between the terms, one fewer: ``+``, ``-``, ``*`` or ``/``.
        result: the figure on the right.
        unit: the word or sign behind it; empty if there is none.
    """

    terms: tuple[Figure, ...]
    operators: tuple[str, ...]
    result: Figure
    unit: str = ""

    @property
    def span(self) -> tuple[int, int]:
        """The equation's position in the text: start and end."""
        return self.terms[0].start, self.result.end

    def holds(self) -> bool:
        """Return whether the equation may be true: in any reading of its figures, exact or rounded.

        Both orders of evaluation count: products before sums, and from left to right.
        """
        read = list(islice(product(*(term.as_one for term in self.terms)), _MOST_READINGS))
        made = {value for values in read for value in _values(values, self.operators)}
        if len(read) == _MOST_READINGS or not made:
            return True
        return any(self._makes(value, result) for value in made for result in self.result.as_one)

    def value(self) -> float:
        """Return the value of the left side, with separators read as grouping thousands if possible."""
        made = _values([max(term.as_one) for term in self.terms], self.operators)
        return made[0] if made else 0.0

    def _makes(self, value: float, result: float) -> bool:
        if self.unit and self.unit not in MONEY and in_other_unit(result, value):
            return True
        if value and not 0.3 < abs(result / value) < 3.0:
            return near(value, result)  # the same value in thousands
        return abs(abs(value) - abs(result)) <= self._slack(value) + 1e-9

    def _slack(self, value: float) -> float:
        """Return the tolerance for rounding: half a unit of the last digit of figures with decimals."""
        units = [_unit(term) for term in self.terms]
        whole = _unit(self.result) == 0.0
        if whole and 100.0 in self.result.readings:  # shares in percent
            return 0.5 * (len(units) + 1)
        rounded = whole and (any(units) or "/" in self.operators)
        slack = 0.5 if rounded else 0.5 * _unit(self.result)
        if set(self.operators) <= {"+", "-"}:
            return slack + 0.5 * sum(units)
        least = [min(map(abs, term.as_one)) or 1.0 for term in self.terms]
        return slack + 0.5 * abs(value) * sum(u / v for u, v in zip(units, least, strict=True))


def equations(text: str) -> Iterator[Equation]:
    """Yield the equations of a text, without those that may be part of a longer equation or a formula."""
    found = figures(text) if "=" in text else ()
    place = 0
    while place < len(found):
        run = _chain(text, found, place)
        if run is None:
            place += 1
            continue
        yield run
        place += len(run.terms) + 1


def _chain(text: str, found: Sequence[Figure], place: int) -> Equation | None:
    first = found[place]
    if place + 2 >= len(found) or found[place + 1].start - first.end > _WIDEST:
        return None
    if not _OPENS.search(text[max(0, first.start - 40) : first.start]):
        return None
    terms, operators = [first], list[str]()
    for figure in found[place + 1 : place + 1 + _LONGEST]:
        between = text[terms[-1].end : figure.start]
        sign = figure.literal[0] if figure.literal[0] in "+-\u2212" else ""
        gap = _GAP.fullmatch(between + (sign if not between.strip() else ""))
        if gap is None:
            return None
        if gap[1] in _EQUALS:
            # A date is no result, as in "12/5 = 12 May".
            dated = any(day.start == 0 for day in days(text[figure.start : figure.end + _WIDEST]))
            if not operators or dated or _GOES_ON.match(text[figure.end : figure.end + 20]):
                return None
            return Equation(tuple(terms), tuple(operators), figure, unit_behind(text, figure))
        operators.append(_OPERATORS[gap[1]])
        terms.append(figure)
    return None


def _values(values: Sequence[float], operators: Sequence[str]) -> tuple[float, ...]:
    """Return the value of the left side with products first, and from left to right; empty if neither exists."""
    try:
        total, term = 0.0, values[0]
        left = values[0]
        for operator, value in zip(operators, values[1:], strict=True):
            if operator in "*/":
                term, left = _apply(term, operator, value), _apply(left, operator, value)
            else:
                left = _apply(left, operator, abs(value))
                total, term = total + term, abs(value) if operator == "+" else -abs(value)
    except (ZeroDivisionError, OverflowError):
        return ()
    return total + term, left


def _apply(one: float, operator: str, other: float) -> float:
    if operator == "+":
        return one + other
    if operator == "-":
        return one - other
    return one * other if operator == "*" else one / other


def _unit(figure: Figure) -> float:
    """Return the place value of a figure's last decimal digit; 0 for a whole number."""
    if not re.search(r"[.,]\d+$", figure.literal):
        return 0.0
    return max(10.0 ** -len(re.split(r"[.,]", figure.literal)[-1]), 1e-9)
