"""Rows of listings that a text picks, and how each stands among the others: what a contrast compares of a choice."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from mast_trace.trajectory.vocabulary import loaded
from mast_trace_judge.local.options import MOST, choices_in, is_choice, lists_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_WORD: Final = re.compile(r"[^\W\d_]{3,}|\w*\d\w*")
_LARGEST: Final = 1e15
"""Numbers from which nobody compares or adds any."""
_A_WORD: Final = re.compile(r"\S{1,24}")


class Trait(NamedTuple):
    """Something that is so of the picked row.

    Attributes:
        name: of the trait.
        value: of it.
        rows: the number of rows among which a rank is one by chance; 1 for a field's own word.
    """

    name: str
    value: str
    rows: int = 1


class Listing:
    """The rows of one result, each with the name by which a text picks it."""

    def __init__(self, text: str) -> None:
        """Read a result; without two rows or more that have names of their own, nothing is ever picked."""
        self.rows: list[tuple[str, Any]] = []
        value = loaded(text) if text.lstrip()[:1] in ("[", "{") else None
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
            if re.search(rf"(?<![\w.]){re.escape(name)}(?![\w]|\.\d)", low)
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
        return [name for name in first if self.column(name)] if isinstance(first, dict) else []

    def column(self, field: str) -> list[float]:
        """Return the numbers of a field; none where a row has none."""
        cells = [row.get(field) if isinstance(row, dict) else None for _, row in self.rows]
        numbers = [
            float(each)
            for each in cells
            if isinstance(each, int | float) and not isinstance(each, bool) and abs(each) < _LARGEST
        ]
        return numbers if len(numbers) == len(cells) else []

    def traits(self, row: int, asked: str) -> Iterator[Trait]:
        """Yield how a row stands among the others.

        Args:
            row: its number.
            asked: what was asked for, in lower case.
        """
        many = len(self.rows)
        name, _ = self.rows[row]
        for field, value in self.fields(row):
            if str(value).lower() == name:
                continue
            numbers = self.column(field)
            if len({*numbers}) > 1:
                yield _rank(f"the lowest {field}", numbers[row] == min(numbers), many)
                yield _rank(f"the highest {field}", numbers[row] == max(numbers), many)
            elif isinstance(value, str | bool) and _A_WORD.fullmatch(str(value)):
                yield Trait(field, str(value))
        words = {*_WORD.findall(asked)}
        shared = [len(words & {*_WORD.findall(str(each).lower())}) for _, each in self.rows]
        if shared.count(max(shared)) == 1:
            yield _rank("the most words of what was asked", shared[row] == max(shared), many)


def _rank(name: str, holds: bool, rows: int) -> Trait:
    return Trait(name, "yes" if holds else "no", rows)


def _named(rows: Sequence[Any]) -> Iterator[tuple[str, Any]]:
    """Yield each of a list's objects with the first of its fields that names one of several."""
    if not all(isinstance(row, dict) for row in rows):
        return
    for key in rows[0]:
        column = [row.get(key) for row in rows]
        if all(map(is_choice, column)) and len({str(each).lower() for each in column}) == len(rows):
            yield from ((str(row[key]).lower(), row) for row in rows)
            return
