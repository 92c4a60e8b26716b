"""Words that offer a profile of one's own, the same on pages and in terminals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mast_trace_lab.fit.fit_gain import MOST_READ

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mast_trace_lab.fit.fit_gain import FitGain, FitOffer

COMMAND: Final = "mast-trace judge fit --name own"
LABEL: Final = "mast-trace label RUN --step N"
ELSEWHERE: Final = (
    "On two sets of other people's runs the likeliest step was right in 42 % with a profile and in 26 % without "
    "one (70 labels), and in 23 % and 24 % (37 labels)."
)
"""From benchmarks/judge/report.md: cross-validated profiles beside the untrained cascade."""


def fit_words(offer: FitOffer) -> Iterator[str]:
    """Yield sentences on what labels are worth to the judge: what was measured, and what is missing."""
    if offer.missing:
        yield (
            f"{_runs(offer.labels)} a label with a decisive step; with {offer.missing} more the judge can "
            "learn from them which step decides your failures."
        )
        yield f"{ELSEWHERE} What it is worth on your runs is measured from the tenth label on."
        return
    yield f"{_runs(offer.labels)} a label with a decisive step: enough for a profile of your own."
    if offer.gain is None:
        yield f"Its worth on your runs could not be measured: {offer.why_unknown}."
        yield ELSEWHERE
    else:
        yield from _measured(offer.gain, offer.labels)
    if offer.learned:
        yield f"A profile of yours was fitted to {offer.learned} of them."


def _measured(gain: FitGain, labels: int) -> Iterator[str]:
    low, high = gain.difference.low, gain.difference.high
    kept = "of other tasks" if gain.folded_by == "task" else "of other runs of nearly the same task"
    yield (
        f"Measured on {gain.runs} of these runs: the likeliest step is the labelled one in "
        f"{_percent(gain.fitted)} with a profile fitted to labels {kept}, in {_percent(gain.shipped)} as the judge "
        f"ships ({_points(gain.fitted - gain.shipped)} points, 95 %: {_points(low)} to {_points(high)})."
    )
    if gain.runs < labels:
        yield (
            f"Not used for that: runs that succeeded or were in a shipped profile's training, and all beyond "
            f"{MOST_READ}."
        )
    if not gain.helps:
        worse = "It would do harm" if high < 0 else "That cannot be told from chance"
        yield f"{worse}: give more labels before you use one."


def _runs(count: int) -> str:
    return f"{count:,} run has" if count == 1 else f"{count:,} runs have"


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _points(share: float) -> str:
    return f"{100 * share:+.0f}"
