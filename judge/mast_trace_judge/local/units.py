"""Units beside figures: whether a figure can be another one in another unit."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mast_trace_judge.local.figures import Figure

MONEY = frozenset(["eur", "euro", "usd", "dollar", "gbp", "chf", "cent", "peso", "yen", "yuan"])
"""Units of money, in the form of `unit_behind`; no fixed factor leads from one to another."""
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


def unit_behind(text: str, figure: Figure) -> str:
    """Return the word or sign right behind a figure, in lower case and in the singular; else empty."""
    found = _BEHIND.match(text, figure.end)
    unit = "" if found is None else _folded(found["unit"])
    return "" if unit in _NO_UNIT else unit


def unit_of(text: str, figure: Figure) -> str:
    """Return the word behind a figure, else the end of the name before it, as in ``distance_km: 59``."""
    found = _BEFORE.search(text[max(0, figure.start - 40) : figure.start].replace("_", " "))
    return unit_behind(text, figure) or ("" if found is None else _folded(found["unit"]))


def names_unit(texts: Iterable[str]) -> bool:
    """Return whether a known unit is named anywhere in the texts."""
    return any(_KNOWN.search(text) for text in texts)


def _folded(unit: str) -> str:
    unit = unit.lower().replace(" ", "")
    return unit[:-1] if len(unit) > 3 and unit.endswith("s") else unit
