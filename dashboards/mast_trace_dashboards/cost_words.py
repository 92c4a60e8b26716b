"""Costs in words, also of listed runs: an unknown price is said, and never taken as 0."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from math import floor, log10
from typing import TYPE_CHECKING, Any, Final

from mast_trace_dashboards.queries import QUERIES
from mast_trace_dashboards.queries.runs import run_key

if TYPE_CHECKING:
    from mast_trace_collector.storage import Store

_LEAST: Final = 0.000001

_AROUND: Final = timedelta(seconds=1)
"""Times in questions are in milliseconds."""


def cost_words(cost: float | None, unpriced: int, *, quality: str = "exact") -> str:
    """Return a cost in US dollars.

    Args:
        cost: of the calls with a known price; None if there are none.
        unpriced: number of the calls whose price is unknown.
        quality: of a run's totals, as the query `runs` has it; of a cost, only "at least" is said.
    """
    if cost is None:
        return "unknown" if unpriced else "$0"
    text = f"at least {dollars(cost)}" if quality == "at least" else dollars(cost)
    if not unpriced:
        return text
    calls = "1 call" if unpriced == 1 else f"{unpriced:,} calls"
    return f"{text} and {calls} of unknown price"


def dollars(cost: float) -> str:
    """Return an amount with cents; of less than a dollar, its first three digits that are no leading zeros."""
    if cost == 0:
        return "$0"
    if cost < _LEAST:
        return "less than $0.000001"
    digits = 2 if cost >= 1 else 2 - floor(log10(cost))
    text = f"${cost:,.{digits}f}"
    return text if cost >= 1 else text.rstrip("0").rstrip(".")


@dataclass(frozen=True)
class ListedCost:
    """The cost of a run's model calls.

    Attributes:
        usd: US dollars of the calls with a known price; None if none has one.
        unpriced: number of calls whose price is unknown.
        quality: of the run's totals, as the query `runs` has it.
    """

    usd: float | None = None
    unpriced: int = 0
    quality: str = "exact"

    @property
    def words(self) -> str:
        """The cost in words; an unknown price is said."""
        return cost_words(self.usd, self.unpriced, quality=self.quality)


def listed_costs(store: Store, rows: Sequence[Mapping[str, Any]]) -> dict[str, ListedCost]:
    """Return the cost of each run with model calls, by its `run_key`.

    Args:
        store: the database; one project's, if only that may be seen.
        rows: of the query `runs`.

    Raises:
        StorageError: the database does not answer.
    """
    if not rows:
        return {}
    found = QUERIES["cost_of_runs"].run(
        store,
        since=min(row["Start"] for row in rows) - _AROUND,
        only=[row["TraceId"] for row in rows],
    )
    quality = {run_key(row): row["Totals"] for row in rows}
    return {
        key: ListedCost(row["Cost"], row["UnpricedCalls"], quality[key])
        for row in found
        if (key := run_key(row)) in quality
    }
