"""The named queries: every number that people see comes from one of these.

The CLI, the web view, Grafana and the alerts run the same text. A filter is an array parameter, of
which an empty one means all; a time range is half-open: from ``since`` up to, not including,
``until``.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from mast_trace_dashboards import (
    queries_alerts,
    queries_decisive,
    queries_ingestion,
    queries_judge,
    queries_metrics,
    queries_modes,
    queries_runs,
    queries_search,
    queries_shares,
    queries_trends,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mast_trace_dashboards.query import Query

QUERIES: Mapping[str, Query] = MappingProxyType(
    {
        query.name: query
        for query in (
            *queries_runs.QUERIES,
            *queries_modes.QUERIES,
            *queries_shares.QUERIES,
            *queries_decisive.QUERIES,
            *queries_judge.QUERIES,
            *queries_ingestion.QUERIES,
            *queries_alerts.QUERIES,
            *queries_metrics.QUERIES,
            *queries_search.QUERIES,
            *queries_trends.QUERIES,
        )
    }
)
"""Every named query by its name."""
