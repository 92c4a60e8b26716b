"""Rows of listings that a text picks, and how each stands among the others: what a contrast compares of a choice."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from mast_trace.trajectory.vocabulary import loaded
from mast_trace_judge.local.dates import dates_in
from mast_trace_judge.local.options import MOST, choices_in, is_choice, lists_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

_WORD: Final = re.compile(r"[^\W\d_]{3,}|\w*\d\w*")
_YES: Final = ("no", "yes")
_LARGEST: Final = 1e15
"""Numbers from which nobody compares or adds any."""
_A_WORD: Final = 40
"""Characters up to which a field is a word or two."""


class Trait(NamedTuple):
    """Something that is so of the picked row.

    Attributes:
        name: of the trait.
        value: of it.
        kind: "rank", or "rank of two" where one in two rows has it by chance; "side" of a date; "value" of a field.
    """

    name: str
    value: str
    kind: str


class Listing:
    """The rows of one result, each with the name by which a text picks it."""

    def __init__(self, text: str) -> None:
        """Read a result; without two rows or more that have names of their own, nothing is ever picked."""
        self.rows: list[tuple[str, Any]] = []
        value = loaded(text) if text.lstrip()[:1] in ("[", "{") else None
        if isinstance(value, dict) and _is_table(value):
            self.rows = [(str(each).lower(), {"name": key}) for key, each in value.items()]
        for rows in lists_of(value):
            named = list(_named(rows)) if 2 <= len(rows) <= MOST else []
            if len({name for name, _ in named}) == len(rows) > len(self.rows):
                self.rows = named
        if value is None and (names := next(choices_in(text), None)):
            parts = re.split(r"[\n;|]", text) if len(names) > 1 else []
            kept = [part.strip() for part in parts if part.strip()]
            if len(kept) == len(names):
                self.rows = [(name.lower(), part) for name, part in zip(names, kept, strict=True)]

    def pick(self, text: str) -> int | None:
        """Return the number of the one row that a text names; None if it names none or several."""
        low = text.lower()
        named = [
            number
            for number, (name, _) in enumerate(self.rows)
            if name in low and re.search(rf"(?<![\w.]){re.escape(name)}(?![\w]|\.\d)", low)
        ]
        return named[0] if len(named) == 1 else None

    def fields(self, row: int) -> Iterator[tuple[str, Any]]:
        """Yield names and values of a row."""
        value = self.rows[row][1]
        if isinstance(value, dict):
            yield from value.items()

    def columns(self) -> list[str]:
        """Return the names of the fields that hold a number in every row."""
        first = self.rows[0][1]
        return (
            [name for name in first if self._column(name, _number)]
            if isinstance(first, dict)
            else []
        )

    def sum(self, field: str) -> float:
        """Return the sum of a field that holds a number in every row."""
        return sum(self._column(field, _number))

    def _column(self, field: str, read: Callable[[Any], float | None]) -> list[float]:
        cells = [row.get(field) if isinstance(row, dict) else None for _, row in self.rows]
        found = [value for each in cells if (value := read(each)) is not None]
        return found if len(found) == len(cells) else []

    def traits(self, row: int, asked: str, heard: Mapping[str, str]) -> Iterator[Trait]:
        """Yield how a row stands among the others, and to what was asked and heard.

        Args:
            row: its number.
            asked: what was asked for, in lower case.
            heard: words that the agent has heard, by the names of their places.
        """
        many = len(self.rows)
        name, whole = self.rows[row]
        last = max(dates_in(asked), default=None)
        for field, value in self.fields(row):
            if str(value).lower() == name:
                continue
            days_of = self._column(field, _day)
            column = days_of or self._column(field, _number)
            if len({*column}) > 1:
                least, most = ("first", "last") if days_of else ("lowest", "highest")
                yield _rank(f"the {least} {field}", column[row] == min(column), many)
                yield _rank(f"the {most} {field}", column[row] == max(column), many)
            if days_of and last is not None:
                before = days_of[row] < last.toordinal()
                yield Trait(f"{field} before the last date asked for", _YES[before], "side")
            elif isinstance(value, str | bool) and len(str(value)) <= _A_WORD and not column:
                yield Trait(field, str(value) or "nothing", "value")
        words = {*_WORD.findall(asked)}
        shared = [len(words & {*_WORD.findall(str(each).lower())}) for _, each in self.rows]
        if shared.count(max(shared)) == 1:
            yield _rank("the most words of what was asked", shared[row] == max(shared), many)
        text = str(whole).lower()
        for place, word in heard.items():
            has = word in text and re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text)
            yield _rank(f"the {place}", bool(has), many)


def _rank(name: str, holds: bool, rows: int) -> Trait:
    return Trait(name, _YES[holds], "rank of two" if rows == 2 else "rank")


def _named(rows: Sequence[Any]) -> Iterator[tuple[str, Any]]:
    """Yield each of a list's objects with the first of its fields that names one of several."""
    if not all(isinstance(row, dict) for row in rows):
        return
    for key in rows[0]:
        column = [row.get(key) for row in rows]
        if all(map(is_choice, column)) and len({str(each).lower() for each in column}) == len(rows):
            yield from ((str(row[key]).lower(), row) for row in rows)
            return


def _is_table(value: dict[str, Any]) -> bool:
    """Return whether an object is a table: its values are different short texts of one form, such as V12 and V30."""
    texts = [each for each in value.values() if is_choice(each) and isinstance(each, str)]
    forms = {re.sub(r"\d+", "#", each) for each in texts}
    return 2 <= len(value) <= MOST and len({*texts}) == len(value) and len(forms) == 1


def _number(cell: Any) -> float | None:
    is_number = isinstance(cell, int | float) and not isinstance(cell, bool)
    return float(cell) if is_number and abs(cell) < _LARGEST else None


def _day(cell: Any) -> float | None:
    found = dates_in(cell) if isinstance(cell, str) else []
    return float(found[0].toordinal()) if len(found) == 1 else None
