"""The named queries: every number that people see comes from one of these.

The CLI, the web view, Grafana and the alerts run the same text. A filter is an array parameter, of
which an empty one means all; a time range is half-open: from ``since`` up to, not including,
``until``.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from mast_trace_dashboards.queries import (
    alerts,
    decisive,
    ingestion,
    judge,
    metrics,
    modes,
    runs,
    search,
    shares,
    trends,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mast_trace_dashboards.queries.query import Query

QUERIES: Mapping[str, Query] = MappingProxyType(
    {
        query.name: query
        for query in (
            *runs.QUERIES,
            *modes.QUERIES,
            *shares.QUERIES,
            *decisive.QUERIES,
            *judge.QUERIES,
            *ingestion.QUERIES,
            *alerts.QUERIES,
            *metrics.QUERIES,
            *search.QUERIES,
            *trends.QUERIES,
        )
    }
)
"""Every named query by its name."""
