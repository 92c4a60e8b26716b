"""Costs of listed runs and of all runs by their parts, and costs in words: an unknown price is said, and never taken as 0."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from functools import partial
from math import floor, log10
from typing import TYPE_CHECKING, Any, Final

from mast_trace_dashboards.queries import QUERIES
from mast_trace_dashboards.queries.query import MOST_KEYS, side_by_side
from mast_trace_dashboards.queries.runs import run_key

if TYPE_CHECKING:
    from mast_trace_collector.storage import Store

_LEAST: Final = 0.000001

_NO_CALLS: Final[dict[str, Any]] = {
    name: None if "Nullable" in column.type else [] if "Array" in column.type else 0
    for name, column in QUERIES["costs"].columns.items()
    if name != "Part"
}
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


def costs_of(
    store: Store, parts: Sequence[str], *, limit: int = 100, **given: Any
) -> dict[str, list[dict[str, Any]]]:
    """Return the cost of runs in all (``total``, one row) and by each part, the most expensive first.

    Args:
        store: the database; one project's, if only that may be seen.
        parts: of the query `costs`, ``tool`` and ``mode``; ``time`` has a row of each stretch, in order, with its ``Time``.
        limit: most rows of another part.
        given: parameters of the query `costs`.

    Raises:
        StorageError: the database does not answer.
    """
    alone = [part for part in parts if part in {"tool", "mode"}]
    owners = {name: value for name, value in given.items() if name != "bucket"}
    rows, *others = side_by_side(
        partial(QUERIES["costs"].run, store, parts=["total", *parts], limit=MOST_KEYS, **given),
        *(partial(QUERIES[f"cost_by_{part}"].run, store, limit=limit, **owners) for part in alone),
    )
    found: dict[str, list[dict[str, Any]]] = {part: [] for part in ("total", *parts)}
    for row in rows:
        found[row.pop("Part")].append(row)
    for row in found.get("time", ()):
        row["Time"] = datetime.fromtimestamp(int(row["Key"]), timezone.utc)
    cut = {part: some[:limit] for part, some in found.items() if part != "time"}
    if "time" in found:
        found["time"].sort(key=lambda row: row["Time"])
    found |= cut | dict(zip(alone, others, strict=True))
    found["total"] = found["total"] or [_NO_CALLS]
    return found
