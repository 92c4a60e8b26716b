"""Words for the outcome, the totals and the duration of a run, the same on pages and in terminals."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from mast_trace.semconv import Termination
from mast_trace_dashboards.queries.sql import NO_END

UNKNOWN: Final = "?"
_LONGEST = 366 * 24 * 3600.0
"""Longest duration of a run, in seconds. Beyond it, a span lacks a time or has a wrong one."""

_OPEN = frozenset({"running", NO_END})
SUSPECT: Final = "suspect"
"""Stands beside the outcome of a judged run that did not fail, and whose record contradicts a good end."""
READING: Final = "a model is reading"
"""Stands beside the verdict of the local layers until the reading's replaces it."""
PROVISIONAL: Final = "provisional"
"""Stands beside the verdict on a run that has just ended: its last spans may not have come."""
_SHOWN_STATES = _OPEN | {"waiting", "unscored", SUSPECT}
_LIMITS = {
    Termination.TIME_LIMIT: "time limit",
    Termination.RECURSION_LIMIT: "recursion limit",
    Termination.BUDGET: "budget",
}
"""Limits that break a run off, by its termination reason."""


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


NOT_REPORTED = "not reported"


def tokens_of(row: Mapping[str, Any]) -> str:
    """Return the tokens of a run, input and output, as the queries `runs` and `run` have them.

    No call of a model takes none: where there are none, nobody has told them.
    """
    total = row["InputTokens"] + row["OutputTokens"]
    if row["Totals"] == "being counted":
        return f"{total:,} (being counted)"
    if row["Totals"] == "exact":
        return f"{total:,}" if total else NOT_REPORTED
    return f"{row['Totals']} {total:,}"


def as_reported(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the row of a run for programs: a suspect says so, and tokens that nobody has told are None."""
    untold = tokens_of(row) == NOT_REPORTED
    told: dict[str, Any] = dict.fromkeys(("InputTokens", "OutputTokens")) if untold else {}
    return {**row, **told, **({"State": SUSPECT} if is_suspect(row) else {})}


def is_suspect(row: Mapping[str, Any]) -> bool:
    """Return whether the run is not known to have failed, and its own record says otherwise."""
    return bool(
        row["State"] == "judged" and row["Outcome"] != "failure" and row["LookStep"] is not None
    )


class OutcomeWords(NamedTuple):
    """The outcome and state of a run, in words.

    Attributes:
        outcome: success, failure or unknown; empty for a run that may go on and has no recorded
            outcome.
        state: running, no end seen, waiting, unscored, suspect or the limit that broke the run off, which
            is shown beside the outcome; else empty.
        reading: `READING` or `PROVISIONAL` where another verdict is to replace this one; else empty.
    """

    outcome: str
    state: str
    reading: str


def outcome_words(row: Mapping[str, Any]) -> OutcomeWords:
    """Return the words for a row of the query `runs`."""
    outcome, state = row["Outcome"] or "unknown", row["State"]
    if outcome == "unknown" and state in _OPEN:
        outcome = ""
    if is_suspect(row):
        state = SUSPECT
    limit = _LIMITS.get(row["TerminationReason"], "")
    reading = {"reading": READING, "provisional": PROVISIONAL}.get(row["Method"], "")
    return OutcomeWords(outcome, state if state in _SHOWN_STATES else limit, reading)
