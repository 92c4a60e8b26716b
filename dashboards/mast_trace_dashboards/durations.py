"""Durations in words, as commands and pages show them."""

from __future__ import annotations

from typing import Final

UNKNOWN: Final = "?"
_LONGEST = 366 * 24 * 3600.0
"""Longest duration of a run, in seconds. Beyond it, a span lacks a time or has a wrong one."""


def in_words(milliseconds: float, *, space: str = " ") -> str:
    """Return a duration in the units that fit it; `UNKNOWN` where it cannot be one.

    Args:
        milliseconds: the duration, by the times of spans.
        space: separator of a number and its unit.
    """
    seconds = milliseconds / 1000
    if not 0 <= seconds <= _LONGEST:
        return UNKNOWN
    if milliseconds < 1000:
        return f"{milliseconds:.0f}{space}ms"
    if round(seconds, 1) < 60:
        return f"{seconds:.1f}{space}s"
    minutes, whole = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    if days:
        return f"{days}{space}d {hours:02d}{space}h"
    if hours:
        return f"{hours}{space}h {minutes:02d}{space}min"
    return f"{minutes}{space}min {whole:02d}{space}s"
