"""What the judge found, as Prometheus metrics; read from the database when they are asked for.

So they are the same whichever of many workers judged a run, and survive restarts.
"""

from __future__ import annotations

from datetime import datetime, timezone
from typing import TYPE_CHECKING

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from mast_trace.taxonomy import Category
from mast_trace_dashboards.queries import QUERIES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prometheus_client.core import Metric

    from mast_trace_collector.storage import Store

_GROUP = ("service", "framework")


class JudgeMetrics(Collector):
    """Register it with the registry whose metrics a process serves."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics as they are now."""
        judged = CounterMetricFamily("mast_trace_runs_judged", "Judged runs.", labels=_GROUP)
        found = CounterMetricFamily(
            "mast_trace_runs_with_mode",
            "Judged runs that show a failure mode of a category.",
            labels=(*_GROUP, "category"),
        )
        for row in QUERIES["judged_totals"].run(self._store):
            group = (row["Service"], row["Framework"])
            judged.add_metric(group, row["Judged"])
            for category in Category:
                name = category.name.lower()
                found.add_metric((*group, name), row[name])
        yield judged
        yield found
        waiting = QUERIES["judge_behind"].one(self._store, until=datetime.now(timezone.utc))
        yield GaugeMetricFamily(
            "mast_trace_judge_oldest_waiting_seconds",
            "For how long the oldest finished run has waited for its verdict.",
            value=waiting["Seconds"] if waiting else 0.0,
        )

    def describe(self) -> list[Metric]:
        """Say nothing at registration: the database need not be there yet."""
        return []
