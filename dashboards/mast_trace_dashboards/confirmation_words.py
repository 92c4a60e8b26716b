"""Words for the arms of a confirmation: counts, intervals, and e-values as sentences."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mast_trace_judge.confirmation import Contrast

SOURCES: Final[Mapping[str, str]] = {
    "person": "a person's text",
    "resample": "the same model, asked again",
    "stronger model": "a stronger model",
    "judge": "the judge's smallest fix",
    "reference": "a reference result",
}
"""The origins of fixes in words."""
_MANY = 1_000_000.0


def count_words(successes: int, runs: int) -> str:
    """Return the result of an arm, such as "3 of 8"."""
    return f"{successes:,} of {runs:,}"


def interval_words(low: float, high: float) -> str:
    """Return the 95 % interval of a success rate, such as "95%: 14% to 69%"."""
    return f"95%: {low:.0%} to {high:.0%}"


def evidence_words(contrast: Contrast, *, alike: bool = False) -> str:
    """Return a contrast's e-value as a sentence.

    If a fix does not help, its e-value ever reaches x with a probability of at most 1/x (Ville's
    inequality), so the value is told as "once in x".

    Args:
        contrast: the contrast.
        alike: whether it is a proof because all repeated replays were alike.
    """
    if alike:
        return "Repeated replays were all alike, so these pairs prove it for these answers of the model."
    value, needed = contrast.e_value, f"once in {contrast.threshold:,.0f}"
    if math.isnan(value) or value < 1.0:
        return f"The pairs do not speak for the fix; a confirmation needs {needed}."
    rarity = f"{value:,.1f}" if value < 10 else f"{value:,.0f}"
    if value > _MANY:
        rarity = "a million or more"
    chance = f"If the fix did not help, pairs like these would come up at most once in {rarity}"
    if value < contrast.threshold:
        return f"{chance}; a confirmation needs {needed}, so this is not enough."
    return f"{chance}; a confirmation needs {needed}."
