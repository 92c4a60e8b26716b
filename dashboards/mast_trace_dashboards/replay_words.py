"""Words for what replays of a run have shown, the same on pages and in terminals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mast_trace_judge.proof import proved_step

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from mast_trace_judge.confirmation import Confirmation, ConfirmationStatus, SuccessRate

HEADINGS: Final[Mapping[ConfirmationStatus, str]] = {
    "confirmed": "Confirmed by replay",
    "repairable": "Confirmed by replay: repairable",
    "systematic": "Replays fail from the start: systematic",
    "overdetermined": "Replays: no single correction helps",
    "diffuse": "Replays: no single step is decisive",
    "unstable": "Replays: the check of the answer is unstable",
    "not isolated": "Replays cannot be compared",
    "refuted": "Refuted by replay",
    "inconclusive": "Replays are inconclusive",
    "untested": "Not tested by replay",
}
"""A heading for each conclusion."""


def heading(confirmation: Confirmation) -> str:
    """Return the heading of a conclusion."""
    if confirmation.status == "systematic" and proved_step(confirmation) is not None:
        return f"{HEADINGS['confirmed']}: systematic"
    return HEADINGS[confirmation.status]


def share_of(rate: SuccessRate) -> str:
    """Return a success rate with its counts and its interval."""
    if not rate.runs:
        return "no outcome"
    share = rate.successes / rate.runs
    return f"{rate.successes} of {rate.runs} ({share:.0%}, 95%: {rate.low:.0%} to {rate.high:.0%})"


def falls(confirmation: Confirmation) -> Iterator[tuple[SuccessRate, float | None]]:
    """Yield each success rate with its fall from the one before, V(s) - V(t); None if unknown.

    Falls are signed, so that they add up to the success rate of the start.
    """
    before: float | None = None
    for rate in confirmation.curve:
        share = rate.successes / rate.runs if rate.runs else None
        yield rate, None if before is None or share is None else before - share
        before = share if share is not None else before


def place(confirmation: Confirmation, step: int) -> str:
    """Return the part that a step has in the conclusion; empty if it has none."""
    parts = []
    if step == proved_step(confirmation):
        parts.append("decisive")
    if step == confirmation.point_of_no_return:
        parts.append("point of no return")
    if step in confirmation.refuted:
        parts.append("refuted")
    return ", ".join(parts)


def price(confirmation: Confirmation) -> str:
    """Return the number of replays and their cost, and whether they were made elsewhere."""
    cost = "cost unknown" if confirmation.cost_usd is None else f"${confirmation.cost_usd:.4f}"
    made = "" if confirmation.plan_id or not confirmation.replays else ", taken over from a file"
    return f"{confirmation.replays:,} replays, {confirmation.live_calls:,} live model calls, {cost}{made}"
