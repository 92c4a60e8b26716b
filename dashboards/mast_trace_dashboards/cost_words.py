"""Costs in words: an unknown price is said, and never taken as 0."""

from __future__ import annotations

from typing import Final

_LEAST: Final = 0.000001


def cost_words(cost: float | None, unpriced: int) -> str:
    """Return a cost in US dollars.

    Args:
        cost: of the calls with a known price; None if there are none.
        unpriced: number of the calls whose price is unknown.
    """
    if cost is None:
        return "unknown" if unpriced else "$0"
    text = dollars(cost)
    if not unpriced:
        return text
    calls = "1 call" if unpriced == 1 else f"{unpriced:,} calls"
    return f"{text} and {calls} of unknown price"


def dollars(cost: float) -> str:
    """Return an amount with cents, or with as many digits as a smaller one needs."""
    if cost == 0:
        return "$0"
    if cost < _LEAST:
        return "less than $0.000001"
    return f"${cost:,.2f}" if cost >= 1 else f"${cost:.6f}".rstrip("0")
