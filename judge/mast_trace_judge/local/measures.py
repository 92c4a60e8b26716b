"""Figures with their units: what each measures, and whether one is another one in another unit."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from mast_trace_judge.local.arithmetic import in_other_unit
from mast_trace_judge.local.figures import MONEY, in_unit, unit_behind
from mast_trace_judge.local.stated import outside_dates

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mast_trace_judge.local.figures import Figure

_MEASURES: Final = {
    spelling: (measure, spellings.split("/")[0])
    for measure, units in (
        ("volume", "ul/\u00b5l/\u03bcl ml cl l/liter/litre gal/gallon"),
        ("mass", "ug/\u00b5g/\u03bcg mg g/gram kg/kilo t/ton/tonne lb/pound oz/ounce"),
        ("length", "mm cm m/meter/metre km/kilometer/kilometre mi/mile ft/foot/feet in/inch"),
        ("time", "ms s/sec/second min/minute h/hr/hour d/day week month year"),
        ("power", "w kw mw gw"),
        ("energy", "wh kwh mwh j kj cal kcal"),
        ("storage", "kb mb gb tb"),
        ("temperature", "c/\u00b0c/celsius f/\u00b0f/fahrenheit k/kelvin"),
        ("money", " ".join(sorted(MONEY))),
    )
    for spellings in units.split()
    for spelling in spellings.split("/")
}
"""By a spelling of a unit: the measure, and the first spelling. A program mostly uses one unit of each measure."""
_INCHES: Final = re.compile(r"\s?in(?:[\"'.,;)}\]]|$)")
"""The unit, and not the word."""
_POWER: Final = re.compile(r"\s?[^\W\d_]{1,4}[\d\u00b2\u00b3^]")
"""A square or a cube, which are other measures."""
_GOES_ON: Final = frozenset({"", "x", "by", "to"})
"""Words between figures of one unit."""
_MAKES: Final = re.compile(r"[=\u2248\u2192]|->")
"""Signs before the result of a calculation, which may have another unit."""
_MOST: Final = 10
"""Figures of a text that are looked at."""


class Quantity(NamedTuple):
    """A figure with what it measures, in which unit: one behind it, or behind the next figures of a list.

    Attributes:
        measure: what it measures, such as mass.
        unit: its unit, in the first spelling.
        figure: in its text.
        value: one reading of the figure.
    """

    measure: str
    unit: str
    figure: Figure
    value: float

    def is_converted(self, other: Quantity) -> bool:
        """Return whether it is another one in another unit."""
        return self.is_other_unit(other) and in_other_unit(self.value, other.value)

    def is_other_unit(self, other: Quantity) -> bool:
        """Return whether both have a unit of one measure, and not the same one."""
        return self.measure == other.measure and self.unit != other.unit


def measured(text: str) -> Iterator[Quantity]:
    """Yield the first figures of a text that have a known unit, the last of them first."""
    unit, behind = None, len(text)
    for each in reversed(outside_dates(text)[:_MOST]):
        unit = None if _MAKES.search(text, each.end, behind) else unit
        behind = each.start
        word = unit_behind(text, each) or in_unit(text, each)
        word = "in" if _INCHES.match(text, each.end) else word
        unit = _MEASURES.get(word, unit if word in _GOES_ON else None)
        if unit is not None and not _POWER.match(text, each.end):
            yield from (Quantity(*unit, each, value) for value in each.as_one)
