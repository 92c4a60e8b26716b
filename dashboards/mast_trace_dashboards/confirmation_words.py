"""Words for what replays have shown about a run, the same on pages and in terminals."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mast_trace_judge.confirmation import Confirmation, ConfirmationStatus, Contrast

RANK: Final = "confirmed by replay"
"""The rank of a decisive error that a contrast of replays has proved."""
PROVING: Final = frozenset({"confirmed", "repairable"})
"""The conclusions that prove a step to be the decisive error."""
HEADLINES: Final[Mapping[ConfirmationStatus, str]] = {
    "untested": "Not tested by replay",
    "confirmed": "Confirmed by replay",
    "repairable": "Confirmed by replay, and later steps could still have repaired it",
    "refuted": "Refuted by replay",
    "inconclusive": "Not decided by replay",
    "systematic": "Systematic: the program fails from the start",
    "overdetermined": "Overdetermined: no single fix helps",
    "diffuse": "Diffuse: no single step explains the failure",
    "unstable": "Unstable: the check of the outcome does not judge the same answer alike",
    "not isolated": "Not isolated: replays of this program cannot be compared",
}
"""A few words for each conclusion."""
SOURCES: Final[Mapping[str, str]] = {
    "person": "a person's text",
    "resample": "the same model, asked again",
    "stronger model": "a stronger model",
    "judge": "the judge's smallest fix",
    "reference": "a reference result",
}
"""The origins of fixes in words."""
_MANY = 1_000_000.0


def proved_step(confirmation: Confirmation | None) -> int | None:
    """Return the step that replays have proved to be the decisive error; None if there is none."""
    if confirmation is None or confirmation.status not in PROVING:
        return None
    return confirmation.origin


def count_words(successes: int, runs: int) -> str:
    """Return the result of an arm, such as "3 of 8"."""
    return f"{successes:,} of {runs:,}"


def interval_words(low: float, high: float) -> str:
    """Return the 95 % interval of a success rate, such as "95%: 14% to 69%"."""
    return f"95%: {low:.0%} to {high:.0%}"


def evidence_words(contrast: Contrast) -> str:
    """Return a contrast's e-value as a sentence.

    If a fix does not help, its e-value ever reaches x with a probability of at most 1/x (Ville's
    inequality), so the value is told as "once in x".
    """
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


def cost_words(confirmation: Confirmation) -> str:
    """Return the effort of all replays so far, such as "48 replays with 310 live calls, $0.42"."""
    cost = confirmation.cost_usd
    price = "at an unknown price" if cost is None else f"${cost:,.4f}"
    return f"{confirmation.replays:,} replays with {confirmation.live_calls:,} live calls, {price}"
