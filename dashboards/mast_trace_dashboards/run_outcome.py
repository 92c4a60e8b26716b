"""Words for the outcome of a run, the same on pages and in terminals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from mast_trace_dashboards.queries.sql import NO_END

if TYPE_CHECKING:
    from collections.abc import Mapping

_OPEN = frozenset({"running", NO_END})
_SHOWN_STATES = _OPEN | {"waiting", "unscored"}


class OutcomeWords(NamedTuple):
    """The outcome and state of a run, in words.

    Attributes:
        outcome: success, failure or unknown; empty for a run that may go on and has no recorded
            outcome.
        state: running, no end seen, waiting or unscored, which is shown beside the outcome; else
            empty.
    """

    outcome: str
    state: str


def outcome_words(row: Mapping[str, Any]) -> OutcomeWords:
    """Return the words for a row of the query `runs`."""
    outcome, state = row["Outcome"] or "unknown", row["State"]
    if outcome == "unknown" and state in _OPEN:
        outcome = ""
    return OutcomeWords(outcome, state if state in _SHOWN_STATES else "")
