"""The pages of totals: agents with their errors and cost, and the cost over time and by its parts."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from mast_trace_dashboards.cost_words import cost_words
from mast_trace_dashboards.queries import QUERIES
from mast_trace_dashboards.web.filters import Filters
from mast_trace_dashboards.web.finding.pages import rate_words
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


class TotalsPages(StoredPages):
    """The handlers of these pages."""

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
        rows = QUERIES["decisive_by_agent"].run(self._store, **given)
        costs = QUERIES["cost_by_agent"].run(self._store, **given)
        spent = {row["Key"]: cost_words(row["Cost"], row["UnpricedCalls"]) for row in costs}
        for row in rows:
            row["Errs"] = rate_words(row["Errors"], row["Acts"])
            row["Cost"] = spent.get(row["Agent"], "-")
        return {"rows": rows, "filters": filters}


def cost_of_runs(store: Store, filters: Filters) -> dict[str, Any]:
    """Return the variables of the page of costs.

    Raises:
        StorageError: the database does not answer.
    """
    given = filters.narrowing
    total = QUERIES["cost_totals"].one(store, **given)
    bucket = _BUCKETS.get(filters.since, timedelta(days=1)).total_seconds()
    stretches = QUERIES["cost_over_time"].run(store, **given, bucket=int(bucket))
    parts = {part: QUERIES[f"cost_by_{part}"].run(store, **given, limit=_ROWS) for part in PARTS}
    return {
        "total": total,
        "stretches": stretches,
        "most": max((row["Cost"] or 0.0 for row in stretches), default=0.0),
        "parts": parts,
        "filters": filters,
    }
