"""Figures in a text, in any notation.

``47,90`` is 47.9 in German and two numbers in a list; ``1,234`` is a thousand or 1.234; ``-$16.63``
is -16.63. A `Figure` has all readings that its spelling allows: a rule that accuses an agent of a
wrong figure has to rule out every reading.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MONEY = frozenset(["eur", "euro", "usd", "dollar", "gbp", "chf", "cent", "peso", "yen", "yuan"])
"""Units of money, in the form of `unit_behind`; no fixed factor leads from one to another."""
_SIGNS_OF_MONEY = {
    "\u20ac": "eur",
    "$": "usd",
    "\u00a3": "gbp",
    "\u00a5": "yen",
    "DOLLAR": "usd",
    "FRANKEN": "chf",
    "FRANC": "chf",
}
_BEHIND = re.compile(
    r"[\s*_`'\"\u00a0\u202f]{0,3}(?P<unit>\u00b0\s?[CFK]?\b|[%\u2032\u2033]|[^\W\d_]{1,24})"
)
_BEFORE = re.compile(r"(?P<unit>[^\W\d_]{1,24})\)?[\"'*`]*\s*[:=\uff1a]\s*[\"'*`]*$")
_NO_UNIT = frozenset(
    [
        *("a", "after", "an", "and", "as", "at", "based", "because", "before", "but", "by", "for"),
        *("from", "has", "if", "in", "is", "of", "on", "or", "since", "so", "than", "that", "the"),
        *("then", "this", "to", "was", "when", "which", "while", "with", "according", "today"),
        *("und", "im", "f\u00fcr", "aus", "nach", "laut", "ist", "bei", "mit", "am"),
        *("y", "en", "para", "de", "seg\u00fan", "es", "o", "con", "seg", "por", "hoy"),
    ]
)
"""Words behind a figure that are no unit of it."""
_KNOWN = re.compile(
    r"(?:\b|(?<=_)|(?<=\d))(?:mi|miles?|km|kilomet(?:er|re)s?|kmh|mph|kph|kg|kilo(?:gram)?s?|lbs?|pounds?|cm"
    r"|centimet(?:er|re)s?|inch(?:es)?|ft|feet|foot|met(?:er|re)s?|gal(?:lons?)?|lit(?:er|re)s?|oz|ounces?"
    r"|grams?|k?cal(?:ories)?|kj|joules?|celsius|fahrenheit|kelvin|degrees?|units?|metric|imperial"
    r"|h|hrs?|hours?|min(?:utes?|s)?|sec(?:onds?|s)?|ms|days?|weeks?|months?|years?|[kmgt]i?b|(?:kilo|mega"
    r"|giga)?bytes?|meilen?|stunden?|minuten?|sekunden?|tag(?:e|en)?|wochen?|monate?n?|jahre?n?|grad"
    r"|zoll|pfund|gramm|millas?|kil[o\u00f3]metros?|horas?|minutos?|segundos?|d[i\u00ed]as?|semanas?|mes(?:es)?"
    r"|a\u00f1os?|grados?)(?:\b|(?=_))|\u00b0|[\u91cc\u5206\u5929\u5468\u6708\u5e74\u5ea6]|\u5c0f\u65f6|\u516c\u65a4",
    re.IGNORECASE,
)
"""Words and signs for units of length, mass, volume, energy, temperature, time and storage."""

_REMEMBERED = 20_000
"""Length up to which the figures of a text are kept: rules ask for them again."""
_SPACES = "\u00a0\u202f\u2009"
_NO_WORD = r"(?![^\W\u3040-\u30ff\u4e00-\u9fff])"
"""Behind a figure no word goes on; Chinese and Japanese write no space."""
_LARGE = r"\s?(?:(?P<thousand>[kK]|thousand)|(?P<million>M|mn|million))\b"
_FIGURE = re.compile(
    rf"(?:(?<![\w.,])(?P<sign>[-+\u2212]) ?[$\u20ac\u00a3\u00a5\u20b9]?)?(?<![^\W\u3040-\u30ff\u4e00-\u9fff])(?<!\.)"
    rf"(?P<digits>\d++(?:[.,'{_SPACES}]\d++)*+)(?=(?:[kKM]|EUR|USD|GBP|CHF|km|kg)\b|{_NO_WORD})(?=(?:{_LARGE})?)"
)
"""Figures may have a unit right behind them (``118EUR``); other letters make them a part of a word."""
_SEPARATORS = re.compile(rf"[.,'{_SPACES}]")
_NUMBER = r"\s*+-?\d++(?:\.\d++)?(?:[eE][-+]?\d++)?\s*+"
_ARRAY = re.compile(rf"\[{_NUMBER}(?:,{_NUMBER})+\]")
"""A list of numbers in JSON: its commas divide, and are of no number, however closely they stand."""


def unit_behind(text: str, figure: Figure) -> str:
    """Return the word or sign right behind a figure, in lower case and in the singular; else empty."""
    found = _BEHIND.match(text, figure.end)
    unit = "" if found is None else _folded(found["unit"])
    return "" if unit in _NO_UNIT else unit


def unit_of(text: str, figure: Figure) -> str:
    """Return the word behind a figure, else the end of the name before it, as in ``distance_km: 59``."""
    found = _BEFORE.search(text[max(0, figure.start - 40) : figure.start].replace("_", " "))
    return unit_behind(text, figure) or ("" if found is None else _folded(found["unit"]))


def in_unit(text: str, figure: Figure) -> str:
    """Return the unit of money, measure or share that stands beside a figure; empty where none is known."""
    before = text[max(0, figure.start - 4) : figure.start].rstrip(" *_`\u00a0").upper()
    large = re.match(_LARGE, text[figure.end :])
    behind = figure.end + (large.end() if large else 0)
    word = _BEHIND.match(text, behind)
    sign = text[behind : behind + 4].lstrip(" *_`\u00a0")[:1]
    for told in (word["unit"] if word else "", sign, before[-3:], before[-1:]):
        unit = _folded(_SIGNS_OF_MONEY.get(told.upper(), told))
        if unit in MONEY or unit == "%" or (len(unit) > 1 and _KNOWN.fullmatch(unit)):
            return "eur" if unit == "euro" else unit
    return ""


def names_unit(texts: Iterable[str]) -> bool:
    """Return whether a known unit is named anywhere in the texts."""
    return any(_KNOWN.search(text) for text in texts)


def _folded(unit: str) -> str:
    unit = unit.lower().replace(" ", "")
    return unit[:-1] if len(unit) > 3 and unit.endswith("s") else unit


@dataclass(frozen=True)
class Figure:
    """A number in a text.

    Attributes:
        literal: its digits and separators, word for word, with the sign before them.
        start: its first position in the text.
        end: the position after it.
        readings: the numbers that the spelling allows; also its parts, where it may be a list.
    """

    literal: str
    start: int
    end: int
    readings: frozenset[float]

    @property
    def span(self) -> tuple[int, int]:
        """Start and end in the text."""
        return self.start, self.end

    @property
    def as_one(self) -> frozenset[float]:
        """The readings that take it for one number, and for no list."""
        parts = {float(part) for part in re.findall(r"\d+", self.literal)}
        return frozenset(each for each in self.readings if abs(each) not in parts) or self.readings


def figures(text: str) -> tuple[Figure, ...]:
    """Find the figures of a text, in order; parts of words are none."""
    return _figures(text) if len(text) <= _REMEMBERED else tuple(_found(text))


def known_values(texts: Iterable[str]) -> set[float]:
    """Return every reading of every figure in the texts."""
    return {value for text in texts for figure in figures(text) for value in figure.readings}


@lru_cache(maxsize=256)
def _figures(text: str) -> tuple[Figure, ...]:
    return tuple(_found(text))


def _found(text: str) -> Iterator[Figure]:
    arrays = [each.span() for each in _ARRAY.finditer(text)] if "[" in text else []
    begins = [begin for begin, _ in arrays]
    for match in _FIGURE.finditer(text):
        before = bisect_left(begins, match.start())
        if before and match.start() < arrays[before - 1][1]:
            yield from _listed(text, match)
            continue
        positive = _readings(match["digits"])
        factor = 1e3 if match["thousand"] else 1e6 if match["million"] else 1.0
        positive |= {value * factor for value in positive}
        signed = {-value for value in positive} if match["sign"] in {"-", "\u2212"} else set()
        start = match.start("sign") if match["sign"] else match.start()
        yield Figure(match[0], start, match.end(), frozenset(positive | signed))


def _listed(text: str, match: re.Match[str]) -> Iterator[Figure]:
    """Yield each number of a part of a list."""
    start = match.start("digits")
    for digits in match["digits"].split(","):
        sign = "-" if text[start - 1] == "-" else ""
        first, last = start - len(sign), start + len(digits)
        yield Figure(sign + digits, first, last, frozenset({_number(sign + digits)}))
        start = last + 1


def _readings(digits: str) -> set[float]:
    parts = _SEPARATORS.split(digits)
    if len(parts) == 1:
        return {_number(digits)}
    marks = _SEPARATORS.findall(digits)
    whole, last = "".join(parts[:-1]), parts[-1]
    read: set[float] = set()
    if len(set(marks)) == 1:
        if all(len(part) == 3 for part in parts[1:]) or _indian(parts):
            read.add(_number(whole + last))
        if len(marks) == 1 and marks[0] in ".,":
            read.add(_number(f"{whole}.{last}"))
    elif len(set(marks[:-1])) == 1 and marks[-1] in ".,":
        read.add(_number(f"{whole}.{last}"))
    if set(marks) <= {","} or not read:
        read |= {_number(part) for part in parts}
    return read


def _indian(parts: list[str]) -> bool:
    """Return whether digits are grouped as in 12,34,567."""
    return len(parts[-1]) == 3 and all(len(part) == 2 for part in parts[1:-1]) and len(parts) > 2


def _number(digits: str) -> float:
    value = float(digits)
    return value if math.isfinite(value) else 0.0
