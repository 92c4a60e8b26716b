"""The pages of totals: agents with their errors and cost, and the cost over time and by its parts."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from mast_trace.taxonomy import mode_words
from mast_trace_dashboards.cost_words import cost_words
from mast_trace_dashboards.queries import QUERIES
from mast_trace_dashboards.queries.query import side_by_side
from mast_trace_dashboards.web.filters import COST, Filters
from mast_trace_dashboards.web.finding.pages import rate_words
from mast_trace_dashboards.web.sections import sections_of
from mast_trace_dashboards.web.views import StoredPages

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from mast_trace_collector.storage import Store

PARTS: Final = ("agent", "tool", "model", "version")
"""Parts by which the cost is shown."""
_ROWS: Final = 20
_BUCKETS: Final = {"1h": timedelta(minutes=5), "24h": timedelta(hours=1)}
"""The stretches of the cost over time, by the chosen age; days for the others."""


DAYS: Final = 7
"""Days of the tiles above the list of runs; the last one is today."""
_TILES: Final = (
    ("failure", "Failed", "outcome=failure"),
    ("suspect", "Suspect", "outcome=suspect"),
    ("mode", "Most frequent mode", "mode"),
    ("agent", "Decided most", "decided_by"),
)
"""Failures, and kinds of the query `found_by_day`, with titles, and the filter that lists their runs."""


@dataclass(frozen=True)
class Tile:
    """One measure of the last days above the list of runs.

    Attributes:
        title: its name.
        words: its value today; of a failure mode and an agent, its own name.
        more: its value in all days, in words.
        address: the query string of the list of its runs.
        bars: its value of each day, the latest last.
    """

    title: str
    words: str
    more: str
    address: str
    bars: Sequence[float]


def week_of(store: Store, filters: Filters) -> list[Tile]:
    """Return failed and suspect runs, the mode and the agent that fail most, and the cost, of the last `DAYS`.

    There are none where no run of these days failed or was judged, and no call priced.

    Args:
        store: the database, of the visitor's project.
        filters: of the list; its service and its project narrow the tiles.

    Raises:
        StorageError: the database does not answer.
    """
    today = datetime.now(timezone.utc).replace(hour=0, minute=0, second=0, microsecond=0)
    first = today - timedelta(days=DAYS - 1)
    # A sender's clock may be ahead: its runs of tomorrow have no bar.
    until = today + timedelta(days=1)
    given = {"since": first, "until": until, "services": filters.narrowing["services"]}
    found: dict[str, dict[str, list[int]]] = {kind: {} for kind, _, _ in _TILES}
    # Failures that nobody judged yet count like the others, as they do in the list.
    ended, explained, spent = side_by_side(
        partial(QUERIES["outcomes_over_time"].run, store, **given, bucket=86_400),
        partial(QUERIES["found_by_day"].run, store, **given),
        partial(QUERIES["cost_over_time"].run, store, **given, bucket=86_400),
    )
    for row in ended:
        if row["Failures"]:
            bars = found["failure"].setdefault("", [0] * DAYS)
            bars[(row["Time"].date() - first.date()).days] = row["Failures"]
    for row in explained:
        bars = found[row["Kind"]].setdefault(row["Value"], [0] * DAYS)
        bars[(row["Day"] - first.date()).days] = row["Runs"]
    if not (any(found.values()) or spent):
        return []
    of_days = Filters(project=filters.project, service=filters.service, since=first.isoformat())
    tiles = []
    for kind, title, chosen in _TILES:
        most = max(found[kind].items(), key=lambda each: sum(each[1]), default=("", [0] * DAYS))
        value, bars = most
        if chosen.startswith("outcome"):
            words, address = f"{bars[-1]:,} today", of_days.with_value(*chosen.split("="))
        else:
            words, address = mode_words(value), of_days.with_value(chosen, value)
        tiles.append(Tile(title, words or "-", f"{sum(bars):,} in {DAYS} days", address, bars))
    priced = [0.0] * DAYS
    for row in spent:
        priced[(row["Time"].date() - first.date()).days] = row["Cost"] or 0.0
    known = sum(priced) if any(row["Cost"] is not None for row in spent) else None
    words = cost_words(known, sum(row["UnpricedCalls"] for row in spent))
    address = of_days.with_value("sort", COST)
    tiles.append(Tile("Cost", words, f"in {DAYS} days", address, priced))
    return tiles


class TotalsPages(StoredPages):
    """The handlers of these pages."""

    async def week(self, request: Request) -> Response:
        """Answer with the last days in a few tiles, as a part of the list of runs."""
        tiles = await asyncio.to_thread(week_of, self._store, Filters.of(request.query_params))
        return self._html(request, "_week.html", tiles=tiles)

    async def agents(self, request: Request) -> Response:
        """Answer with the agents: asserted errors among all that each did, and its cost."""
        values = await asyncio.to_thread(self._agents, Filters.of(request.query_params))
        return self._html(request, "agents.html", **values)

    async def cost(self, request: Request) -> Response:
        """Answer with the cost over time, by its parts, and after the decisive step."""
        values = await asyncio.to_thread(
            cost_of_runs, self._store, Filters.of(request.query_params)
        )
        return self._html(request, "cost.html", **values)

    def _agents(self, filters: Filters) -> dict[str, Any]:
        given = filters.narrowing
        rows, costs = side_by_side(
            partial(QUERIES["decisive_by_agent"].run, self._store, **given),
            partial(QUERIES["cost_by_agent"].run, self._store, **given),
        )
        spent = {row["Key"]: cost_words(row["Cost"], row["UnpricedCalls"]) for row in costs}
        for row in rows:
            row["Errs"] = rate_words(row["Errors"], row["Acts"])
            row["Cost"] = spent.get(row["Agent"], "-")
        return {"rows": rows, "filters": filters, "sections": sections_of("agents", self._store)}


def cost_of_runs(store: Store, filters: Filters) -> dict[str, Any]:
    """Return the variables of the page of costs.

    Raises:
        StorageError: the database does not answer.
    """
    given = filters.narrowing
    bucket = _BUCKETS.get(filters.since, timedelta(days=1)).total_seconds()
    total, stretches, *parts = side_by_side(
        partial(QUERIES["cost_totals"].one, store, **given),
        partial(QUERIES["cost_over_time"].run, store, **given, bucket=int(bucket)),
        *(partial(QUERIES[f"cost_by_{part}"].run, store, **given, limit=_ROWS) for part in PARTS),
    )
    return {
        "total": total,
        "stretches": stretches,
        "most": max((row["Cost"] or 0.0 for row in stretches), default=0.0),
        "parts": dict(zip(PARTS, parts, strict=True)),
        "filters": filters,
    }
