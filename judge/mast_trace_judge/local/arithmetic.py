"""Arithmetic relations between numbers: one follows from others, or is another one miswritten."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

_MOST_SUMS = 50_000
"""Number of sums beyond which nearly every figure equals one of them."""

TOO_MANY = 400
"""Known numbers beyond which nothing new can be told from a sum of them."""
_MOST_OPERANDS = 60
COUNTED = 13
"""A number that people, months or pieces have, though nobody names it, is below it."""
_SMALL = 31
"""Factors up to this are ordinary in sums: days, people, months."""
_UNITS = (
    *(1.609344, 2.204623, 2.54, 3.28084, 3.785412, 28.349523, 4.184, 1.8),
    *(60.0, 3600.0, 24.0, 7.0, 52.0, 365.0, 12.0, 1024.0),
)
"""Factors between units: miles, pounds, inches, feet, gallons, ounces, calories, kelvins, times."""


def reachable(value: float, parts: Sequence[float], factors: Collection[float]) -> bool:
    """Return whether a value may be a sum of some of the parts.

    Args:
        value: the stated total.
        parts: figures, each of which may be left out, added or subtracted, once or times a factor.
        factors: quantities that the run names, such as nights or people.
    """
    multiples = {0.0, 1.0, -1.0, *factors}
    sums = {0.0}
    for part in parts:
        sums = {round(total + part * times, 4) for total in sums for times in multiples}
        if len(sums) > _MOST_SUMS:
            return True
    # The total as a whole may have been multiplied or divided by a factor.
    wanted = {value} | {w for f in factors if f for w in (value / f, value * f)}
    slack = 0.5 if value == int(value) else 0.006
    return any(abs(abs(total) - abs(w)) <= slack for total in sums for w in wanted)


def near(one: float, other: float) -> bool:
    """Return whether one number is the other, rounded or in another decimal unit."""
    if one == other:
        return True
    if not one or not other:
        return False
    ratio = abs(one / other)
    while ratio >= 10**0.5:
        ratio /= 10
    while ratio < 10**-0.5:
        ratio *= 10
    return abs(ratio - 1) < 0.01


def derived(value: float, known: set[float], counts: int = _SMALL) -> bool:
    """Return whether a number follows from known ones by one step of arithmetic.

    Sums are taken of known numbers and of one with 1, products also of a known one with a
    whole number below ``counts``. Where very many numbers are known, nothing new can be told from a sum of them.
    """
    if len(known) > TOO_MANY or any(near(value, a) for a in known):
        return True
    ordered = {round(a, 6) for a in known}
    for a in known:
        if {round(value - a, 6), round(a - value, 6)} & (ordered | {1.0}):
            return True
    factors = known | {float(i) for i in range(2, counts)}
    wanted = {round(w, 6) for f in factors if f for w in (value / f, value * f)}
    return bool(wanted & ordered)


def derived_twice(value: float, known: set[float]) -> bool:
    """Return whether a number may follow from known ones by one or two steps of arithmetic.

    Taken for yes where so many numbers are known that nearly every one follows.
    """
    if len(known) > _MOST_OPERANDS or not value:
        return True
    terms = {abs(each) for each in known if each} | {2.0, 100.0}
    once = sorted(each for a in terms for b in terms for each in _joined(a, b))
    slack = 1e-6 if value == int(value) else 0.005
    for term in terms:
        for wanted, by in (
            *((each, 1.0) for each in (value, value - term, value + term, term - value)),
            *((value / term, 1 / term), (value * term, term), (term / value, term / value**2)),
        ):
            place = bisect_left(once, wanted - slack * by)
            if place < len(once) and once[place] <= wanted + slack * by:
                return True
    return False


def _joined(one: float, other: float) -> Iterator[float]:
    yield from (one + other, abs(one - other), one * other)
    yield from (part / by for part, by in ((one, other), (other, one)) if by)


def chance_of(one: float, other: float) -> float:
    """Return the share of the figures with as many digits that would be as near to another one.

    As near are, for two exchanged digits, all exchanges of neighbours; else all changes of one digit.
    Zeros at the end are no digits here: round figures are frequent.
    """
    a, b = (f"{each:.10g}".replace(".", "").rstrip("0") for each in (one, other))
    digits = max(len(a), len(b))
    ways = (
        digits - 1 if sorted(a.ljust(digits, "0")) == sorted(b.ljust(digits, "0")) else 9 * digits
    )
    return float(ways / (9 * 10 ** (digits - 1)))


def in_other_unit(value: float, known: float) -> bool:
    """Return whether a number is a known one in another unit, such as degrees Celsius for Fahrenheit.

    To be asked of one known number: with many of them nearly every number is some unit's.
    """
    if abs(value - (known - 32) / 1.8) < 0.6 or abs(value - (known * 1.8 + 32)) < 0.6:
        return True
    return any(
        abs(value - other) <= 0.01 * abs(value)
        for factor in _UNITS
        for other in (known * factor, known / factor)
    )


def slip(one: str, other: str) -> bool:
    """Return whether two figures of three digits or more differ by one digit or two exchanged ones."""
    a, b = one.replace(",", ""), other.replace(",", "")
    if len(a) != len(b) or sum(c.isdigit() for c in a) < 3 or a == b:
        return False
    return sum(x != y for x, y in zip(a, b, strict=True)) == 1 or exchanged(a, b)


def exchanged(one: str, other: str) -> bool:
    """Return whether two words or figures differ by two neighbours that are exchanged."""
    different = [n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b]
    return (
        len(one) == len(other)
        and len(different) == 2
        and different[1] - different[0] == 1
        and sorted(one) == sorted(other)
    )
