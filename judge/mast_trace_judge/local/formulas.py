"""Formulas by which a stated figure or date follows from named ones: what a contrast compares of a calculation.

A figure of few digits follows from many others by chance. A formula tells something where the same one holds in
several runs whose inputs differ.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter, defaultdict
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

from mast_trace_judge.local.dates import dates_in
from mast_trace_judge.local.figures import unit_of
from mast_trace_judge.local.picks import Listing
from mast_trace_judge.local.stated import outside_dates, owner

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from datetime import date

    from mast_trace.trajectory import Step
    from mast_trace_judge.local.figures import Figure

_MOST: Final = 20
"""Operands that are combined, the newest; of more, nearly every figure follows."""
_MOST_FOUND: Final = 200
"""Formulas of one figure that are kept."""
_MOST_STATED: Final = 20
"""Figures of a text that are looked at; a longer list is a listing."""
A_FIGURE: Final = "a figure"
"""The name of a result without fields."""
_LAST_DATE: Final = "the last date heard"
_MOST_WORDS: Final = 30
_WORDS: Final = re.compile(r"[^\W\d_][\w -]{2,30}")
_PERCENT: Final = ("100", 100.0)


class Formula(NamedTuple):
    """A formula, in words and signs, and the names of the values that it takes."""

    says: str
    operands: tuple[str, ...]


class _Pair(NamedTuple):
    value: float
    one: str
    sign: str
    other: str

    def as_formula(self) -> Formula:
        return Formula(f"{self.one} {self.sign} {self.other}", (self.one, self.other))


class Operands:
    """Named numbers, and what two of them make."""

    def __init__(self, named: Mapping[str, float]) -> None:
        """Combine the newest numbers that are not zero."""
        self._named = sorted([each for each in named.items() if each[1]][-_MOST:])
        pairs = []
        for number, (one, a) in enumerate(self._named):
            for other, b in self._named[number + 1 :]:
                pairs += [_Pair(a + b, one, "+", other), _Pair(a / b, one, "/", other)]
                pairs += [_Pair(b / a, other, "/", one)]
                pairs += (
                    [_Pair(a - b, one, "-", other)] if a > b else [_Pair(b - a, other, "-", one)]
                )
        names = enumerate(self._named)
        self._products = sorted(
            _Pair(a * b, one, "x", other)
            for number, (one, a) in names
            for other, b in self._named[number + 1 :]
        )
        self._pairs = sorted(pairs)

    def of(self, value: float, slack: float) -> Iterator[Formula]:
        """Yield the formulas of a figure.

        Args:
            value: the figure.
            slack: half a unit of its last digit.
        """
        yield from islice(self._found(value, slack), _MOST_FOUND)

    def _found(self, value: float, slack: float) -> Iterator[Formula]:
        for name, a in self._named:
            yield Formula(f"{name} times {value / a:.4g}", (name,))
        for made in (self._pairs, self._products):
            yield from (pair.as_formula() for pair in _between(made, value - slack, value + slack))
        for name, c in (*self._named, _PERCENT):
            low, high = sorted(((value - slack) * c, (value + slack) * c))
            for pair in _between(self._products, low, high):
                if name not in {pair.one, pair.other}:
                    product = pair.as_formula()
                    more = () if name == _PERCENT[0] else (name,)
                    yield Formula(f"{product.says} / {name}", (*product.operands, *more))


def of_date(
    day: date, dates: Mapping[str, date], numbers: Mapping[str, float]
) -> Iterator[Formula]:
    """Yield the formulas of a date: another one, and days between that are always as many, or are named.

    Args:
        day: the date.
        dates: named dates.
        numbers: named numbers.
    """
    for name, other in dates.items():
        gap = (day - other).days
        yield Formula(f"{name} {gap:+} days", (name,))
        for by, count in numbers.items():
            if gap and abs(gap) == count:
                yield Formula(f"{name} {'+' if gap > 0 else '-'} {by}", (name, by))


def _between(made: Sequence[_Pair], low: float, high: float) -> Iterator[_Pair]:
    for place in range(bisect_left(made, low, key=lambda each: each.value), len(made)):
        if made[place].value > high:
            return
        yield made[place]


class Heard:
    """The named values that each agent of a run has heard, and the listings that tools have returned.

    Attributes:
        since: the step at which each name was heard first.
        listings: of the tools.
        words: short texts of results, by the names of their fields.
    """

    def __init__(self, task: str) -> None:
        """Begin with the task, which all agents know."""
        self.since: dict[str, int] = {}
        self.listings: dict[str, tuple[int, Listing]] = {}
        told = {f"{unit} of the task": value for unit, value in _by_unit(task)}
        self._numbers: defaultdict[str, dict[str, float]] = defaultdict(lambda: dict(told))
        self._dates: defaultdict[str, dict[str, date]] = defaultdict(dict)
        self._operands: dict[str, Operands] = {}
        self.words: dict[str, str] = {}
        self.since |= dict.fromkeys(told, -1)

    def result(self, step: Step, text: str, parts: Iterable[tuple[str, str]]) -> None:
        """Take in the fields of a tool's result; of a listing, the sums of its columns.

        Args:
            step: the call.
            text: of its result, as far as it is read.
            parts: names and values of its fields.
        """
        agent, listing = owner(step), Listing(text)
        if listing.rows:
            self.listings[step.tool] = step.index, listing
            for field in listing.columns():
                self._hear(agent, f"all {field} of {step.tool}", step.index, listing.sum(field))
            return
        for name, part in parts:
            self._hear_text(agent, f"{name} of {step.tool}", step.index, part)
            if name != A_FIGURE and len(self.words) < _MOST_WORDS and _WORDS.fullmatch(part):
                self.words[f"{name} of {step.tool}"] = part.lower()
        for unit, value in _by_unit(text) if text.lstrip()[:1] not in ("[", "{") else ():
            self._hear(agent, f"{unit} of {step.tool}", step.index, value)

    def row(self, agent: str, tool: str, row: int) -> None:
        """Take in the fields of a row that an agent has picked."""
        at, listing = self.listings[tool]
        for name, value in listing.fields(row):
            self._hear_text(agent, f"{name} of the picked row of {tool}", at, str(value))

    def message(self, step: Step) -> None:
        """Take in a message: what it says of a unit is the last that its receivers have heard of it."""
        stated = dates_in(step.text)
        for agent in step.recipients:
            for unit, value in _by_unit(step.text):
                self._hear(agent, f"the last {unit} heard", step.index, value)
            if stated:
                self._dates[agent].pop(_LAST_DATE, None)
            if len(stated) == 1:
                self._hear(agent, _LAST_DATE, step.index, stated[0])

    def formulas(
        self, agent: str, text: str, said: Collection[str]
    ) -> Iterator[tuple[set[str], list[Formula]]]:
        """Yield the formulas of each figure and date that an agent is the first to write, with the marks of its readings.

        Args:
            agent: which writes them.
            text: in which it does.
            said: the marks of what was written before.
        """
        numbers, dates = self._numbers[agent], self._dates[agent]
        if numbers and agent not in self._operands:
            self._operands[agent] = Operands(numbers)
        # A result that is one figure may be that of a calculator, by a formula that another run works out itself.
        copied = {each for name, each in numbers.items() if not name.startswith(A_FIGURE)}
        for figure in islice(_figures(text), _MOST_STATED) if numbers else ():
            marks = {mark(value) for value in figure.as_one}
            if marks.isdisjoint(said) and figure.as_one.isdisjoint(copied):
                made = (
                    self._operands[agent].of(value, _slack(figure, value))
                    for value in figure.as_one
                )
                yield marks, [each for formulas in made for each in formulas]
        for day in dates_in(text) if dates else ():
            marks = {mark_of_date((0, day.month, day.day))}
            if marks.isdisjoint(said) and day not in dates.values():
                yield marks, [*of_date(day, dates, numbers)]

    def names(self, agent: str, text: str) -> list[str]:
        """Return the names of an agent's values that a text has as figures of any length."""
        figures = {value for each in outside_dates(text) for value in each.as_one}
        return [name for name, value in self._numbers[agent].items() if value in figures]

    def _hear_text(self, agent: str, name: str, at: int, text: str) -> None:
        found, stated = list(_figures(text, 1)), dates_in(text)
        if len(stated) == 1:
            self._hear(agent, name, at, stated[0])
        elif len(found) == 1 and len(found[0].as_one) == 1:
            self._hear(agent, name, at, next(iter(found[0].as_one)))

    def _hear(self, agent: str, name: str, at: int, value: float | date) -> None:
        self.since.setdefault(name, at)
        if isinstance(value, int | float):
            self._numbers[agent].pop(name, None)
            self._numbers[agent][name] = value
            self._operands.pop(agent, None)
        else:
            self._dates[agent][name] = value


def mark(value: float) -> str:
    """Return a figure in the one spelling in which values are compared."""
    return f"{value:g}"


def mark_of_date(reading: tuple[int, int, int]) -> str:
    """Return a date in that spelling, without its year."""
    return f"date {reading[1:]}"


def _figures(text: str, digits: int = 2) -> Iterator[Figure]:
    found = outside_dates(text)
    yield from (each for each in found if sum(map(str.isdigit, each.literal)) >= digits)


def _by_unit(text: str) -> Iterator[tuple[str, float]]:
    """Yield the figures of a text by the words behind them, or the names before them, as far as each stands there once."""
    found = [
        (unit_of(text, each), each.as_one)
        for each in _figures(text, 1)
        if ":" not in text[max(0, each.start - 1) : each.start] + text[each.end : each.end + 1]
    ]
    often = Counter(unit for unit, _ in found)
    for unit, values in found:
        if unit and often[unit] == 1 and len(values) == 1:
            yield unit, next(iter(values))


def _slack(figure: Figure, value: float) -> float:
    """Return half a unit of the last digit of a figure, read as a value: 1,234 is a whole number or has decimals."""
    parts = re.findall(r"\d+", figure.literal)
    return 0.5 if abs(value) == float("".join(parts)) else 0.5 * 10.0 ** -len(parts[-1])
