"""Dates of a text, in any notation: which one is meant, and which ones are near each other."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

LONGEST = 8000
"""Characters of a text that are read for facts; longer ones are documents."""
_MONTHS = {
    name: number
    for number, names in enumerate(
        (
            "january januar janvier jan enero ene",
            "february februar febrero feb",
            "march m\u00e4rz marzo mars mar m\u00e4r",
            "april apr abril abr",
            "mayo may mai",
            "june juni junio juin jun",
            "july juli julio juillet jul",
            "august aug agosto ago",
            "september septembre septiembre sept sep",
            "october octobre octubre oct oktober okt",
            "november novembre noviembre nov",
            "december decembre dec dezember dez diciembre dic",
        ),
        1,
    )
    for name in names.split()
}
_NAME = "(?:" + "|".join(_MONTHS) + r")(?![^\W\d_])\.?"
_YEAR = r"(?:1[5-9]|20|21)\d\d"
_DATE = re.compile(
    rf"(?<![\d.-])(?:(?P<y>{_YEAR})[-/](?P<m>\d{{1,2}})[-/](?P<d>\d{{1,2}})"
    rf"|(?P<d1>\d{{1,2}})[./](?P<d2>\d{{1,2}})[./](?P<y2>{_YEAR})"
    rf"|(?P<d3>\d{{1,2}})(?:st|nd|rd|th|\.)?[^\S\n](?:of\s|de\s)?(?P<n3>{_NAME})(?:,?\s(?:de\s)?(?P<y3>{_YEAR}))?"
    rf"|\b(?P<n4>{_NAME})[^\S\n](?P<d4>\d{{1,2}})(?:st|nd|rd|th)?(?:,?\s(?P<y4>{_YEAR}))?)(?![\d-])",
    re.IGNORECASE,
)
DERIVED = 5
"""Days from which two dates are hardly one and the next working day."""
_SOME_MONTHS = 100
"""Days up to which a date may be another one misread."""


@dataclass(frozen=True)
class Day:
    """A date in a text; a year of 0 is not given. Where day and month may be exchanged, it has both readings."""

    start: int
    end: int
    readings: frozenset[tuple[int, int, int]]


def days(text: str) -> tuple[Day, ...]:
    """Find the dates of a text."""
    return _days(text[:LONGEST])


@lru_cache(maxsize=512)
def _days(text: str) -> tuple[Day, ...]:
    return tuple(_found(text)) if any(sign.isdigit() for sign in text) else ()


def _found(text: str) -> Iterator[Day]:
    for match in _DATE.finditer(text):
        year = int(match["y"] or match["y2"] or match["y3"] or match["y4"] or 0)
        if match["y"]:
            pairs = {(int(match["m"]), int(match["d"]))}
        elif match["d1"]:
            one, two = int(match["d1"]), int(match["d2"])
            pairs = {(two, one), (one, two)} if "/" in match[0] else {(two, one)}
        else:
            name = (match["n3"] or match["n4"]).lower().rstrip(".")
            pairs = {(_MONTHS[name], int(match["d3"] or match["d4"]))}
        read = frozenset((year, *pair) for pair in pairs if as_date((year, *pair)) is not None)
        if read:
            yield Day(*match.span(), read)


def dates_in(text: str) -> list[date]:
    """Return the different dates of a text that have a year and one reading."""
    read = [each.readings for each in days(text) if len(each.readings) == 1]
    found = {as_date(one) for readings in read for one in readings if one[0]}
    return sorted(each for each in found if each is not None)


def is_near(one: tuple[int, int, int], other: tuple[int, int, int]) -> bool:
    """Return whether two dates are `DERIVED` days to some months apart, by no whole weeks or months."""
    years = one[0] or other[0], other[0] or one[0]
    a, b = as_date((years[0], *one[1:])), as_date((years[1], *other[1:]))
    gap = abs((a - b).days) if a and b else 0
    return DERIVED <= gap <= _SOME_MONTHS and gap % 7 != 0 and one[2] != other[2]


def as_date(reading: tuple[int, int, int]) -> date | None:
    """Return a reading as a date; None if there is no such day."""
    try:
        return date(reading[0] or 2000, *reading[1:])
    except ValueError:
        return None


def is_same(one: tuple[int, int, int], other: tuple[int, int, int]) -> bool:
    """Return whether two dates are one, as far as their years are given."""
    return one[1:] == other[1:] and (one[0] == other[0] or not one[0] or not other[0])
