"""Words for the certainty of a verdict and for what replays have shown, the same on pages and in terminals."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from mast_trace.taxonomy import FAILURE_MODES, mode_words
from mast_trace_dashboards.printable import counted
from mast_trace_judge.proof import proved_step, rank_of
from mast_trace_judge.verdict import Basis, Evidence, ModeFinding, Place, Rank, Verdict

if TYPE_CHECKING:
    from mast_trace_judge.confirmation import (
        Confirmation,
        ConfirmationStatus,
        Contrast,
        SuccessRate,
    )
    from mast_trace_judge.store.model_records import ModelRecord

SOURCES: Final[Mapping[str, str]] = {
    "person": "a person's text",
    "resample": "the same model, asked again",
    "stronger model": "a stronger model",
    "judge": "the judge's smallest fix",
    "reference": "a reference result",
}
"""The origins of fixes in words."""
_MANY = 1_000_000.0
_MOST_LISTED = 6

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
NOBODY: Final = "unknown agent"
"""Stands for the unknown agent of a step."""
BASES: Final[Mapping[Basis, str]] = {
    "confirmed": "confirmed by replay",
    "record": "the record shows it",
    "rule": "by a rule",
    "model": "a model suggests it",
    "contrast": "unlike good runs",
}
"""The kind of evidence for a place, in words."""
LOOK_HEADING: Final = "Look here first"
NOT_MEASURED: Final = (
    "How often such candidates are right was not measured on runs like this one. To have it measured, "
    "label ten failed runs of yours (`mast-trace label RUN`) and run `mast-trace judge fit`; a model "
    "reads the runs as well where MAST_TRACE_JUDGE_MODEL names one."
)
"""Replaces percentages where a verdict is not calibrated, and names the next step."""
RANKS: Final[Mapping[Rank, str]] = {
    "confirmed by replay": "confirmed by replay",
    "exact": "exact finding",
    "model": "quoted by a model",
    "calibrated guess": "calibrated guess",
    "guess": "guess",
}
"""The words for the ranks of a decisive error, the strongest first."""


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
        return f"The pairs give no evidence for the fix; a confirmation needs {needed}."
    rarity = f"{value:,.1f}" if value < 10 else f"{value:,.0f}"
    if value > _MANY:
        rarity = "a million or more"
    chance = f"If the fix did not help, pairs like these would come up at most once in {rarity}"
    if value < contrast.threshold:
        return f"{chance}; a confirmation needs {needed}, so this is not enough."
    return f"{chance}; a confirmation needs {needed}."


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
    return f"{counted(confirmation.replays, 'replay')}, {counted(confirmation.live_calls, 'live model call')}, {cost}{made}"


def sureness(verdict: Verdict) -> str:
    """Return the rank of the decisive step, and how often such steps are right only where it was measured.

    Args:
        verdict: of the run, as it is shown.
    """
    error = verdict.decisive
    if error is None:
        return ""
    rank = rank_of(verdict) or "guess"
    measured = ""
    if verdict.calibrated and rank != "confirmed by replay":
        measured = f"{error.probability:.0%} sure"
    elif rank in {"model", "guess"}:
        same = (each for each in verdict.look_first if each.step == error.step)
        measured = next((each.measured for each in same if each.basis == "model"), "")
        measured = ", ".join(filter(None, [measured, _of_readings(verdict, error.step)]))
    return ", ".join(filter(None, [RANKS[rank], measured]))


def basis_words(place: Place, verdict: Verdict) -> str:
    """Return the evidence for a place: its kind, and how often such places were right.

    Args:
        place: of the verdict.
        verdict: of the run, as it is shown.
    """
    if place.basis == "record" and place.reaches_answer:
        return f"{BASES[place.basis]}, and its figure reaches the answer"
    if place.basis in {"confirmed", "record", "contrast"}:
        return BASES[place.basis]
    measured = [place.measured]
    if place.basis == "rule":
        measured = [place.measured or "how often it is right is not measured"]
    else:
        measured.append(_of_readings(verdict, place.step))
    return ", ".join(filter(None, [BASES[place.basis], *measured]))


def way_words(place: Place) -> str:
    """Return where the wrong value of a place went, in one sentence; empty where it went nowhere."""
    certain = [step for step in place.heirs if step not in place.possible_heirs]
    parts = [
        f"{lead}step{'s' if len(steps) > 1 else ''} {listed(steps)}"
        for lead, steps in (("", certain), ("possibly ", place.possible_heirs))
        if steps
    ]
    end = ", and the answer rests on it" if place.reaches_answer else ""
    return f"The value goes on to {', '.join(parts)}{end}." if parts else ""


def listed(numbers: Sequence[int]) -> str:
    """Return the first numbers of a list in words."""
    shown = ", ".join(map(str, numbers[:_MOST_LISTED]))
    more = len(numbers) - _MOST_LISTED
    return f"{shown} and {more} more" if more > 0 else " and ".join(shown.rsplit(", ", 1))


def no_place(row: Mapping[str, Any]) -> str:
    """Return what a list of runs says of a run that has no place to look at first."""
    is_known = row["Outcome"] == "failure" and row["State"] == "judged"
    return f"no evidence, {counted(row['Steps'], 'step')}" if is_known else "-"


def nothing_found(verdict: Verdict) -> str:
    """Return what a person can do with a run for which there is no evidence of a place."""
    if verdict.outcome == "unknown":
        shown = "No outcome was recorded, and no step stands out."
        return shown if verdict.shown else "Nothing shows that the run failed."
    return (
        f"No evidence found of the step that went wrong; {counted(verdict.steps, 'step')} to read."
    )


def suspicion_of(verdict: Verdict) -> str:
    """Return a sentence on a run that is not known to have failed, and whose record says otherwise; else empty."""
    if not verdict.is_suspect:
        return ""
    known = "Recorded as a success" if verdict.outcome == "success" else "No outcome was recorded"
    shows = any(place.basis in {"confirmed", "record"} for place in verdict.look_first)
    reason = (
        "the record contradicts itself" if shows else "a rule, which may be wrong, sees an error"
    )
    return f"{known}; {reason}."


def not_measured(verdict: Verdict, record: ModelRecord | None = None) -> str:
    """Return a sentence on why no step is asserted; empty where one is.

    Args:
        verdict: of the run, as it is shown.
        record: of the model behind it.
    """
    if proved_step(verdict.confirmation) is not None or verdict.calibrated:
        return ""
    if record is None:
        return NOT_MEASURED
    asked = " `mast-trace label RUN` and the page Label ask for one." if record.is_short else ""
    return f"{record.standing}{asked}"


def _of_readings(verdict: Verdict, step: int) -> str:
    """Return how many readings suggest a step first; empty for another than theirs, or where there was one at most."""
    if verdict.readings < 2 or step != verdict.model_step:
        return ""
    return f"likeliest in {verdict.agreeing} of {verdict.readings} readings"


def likelihood(finding: ModeFinding) -> str:
    """Return the probability of a failure mode; one that does not count as shown is called possible.

    A model's own number is no measure of how often it is right, and is not shown.
    """
    if finding.evidence is Evidence.MODEL:
        return "likely" if finding.is_shown else "possible"
    return f"{'' if finding.is_shown else 'possible, '}{finding.probability:.0%}"


def counting(verdict: Verdict) -> Sequence[ModeFinding]:
    """Return the failure modes that steps are marked with: none where nothing speaks against a run that has not failed."""
    doubted = verdict.outcome == "failure" or verdict.look_first or verdict.shown
    return verdict.modes if doubted else ()


def marked(finding: ModeFinding) -> str:
    """Return a mode's code and short words, with a question mark where it is only possible."""
    return f"{mode_words(finding.code)}{'' if finding.is_shown else '?'}"


def not_examined(verdict: Verdict) -> str:
    """Return a sentence on the failure modes that were not examined; empty if all were."""
    if not verdict.examined:
        return "An earlier version judged this run; its examined modes are not known."
    missing = [code for code in FAILURE_MODES if code not in verdict.examined]
    return f"Not examined: {', '.join(missing)}." if missing else ""
