"""Prometheus metrics from the database: verdicts, and the numbers of the alert rules.

They are queried at each scrape, so they do not depend on which of many workers judged a run.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from mast_trace.exceptions import StorageError
from mast_trace.taxonomy import Category
from mast_trace_dashboards.alerts.rules import RULES
from mast_trace_dashboards.queries import QUERIES

if TYPE_CHECKING:
    from mast_trace_collector.storage import Store

logger = logging.getLogger(__name__)

_GROUP: Final = ("service", "framework")
_SPIKE: Final = "_spike"
_SPIKES: Final = tuple(
    dict.fromkeys(rule.query.removesuffix(_SPIKE) for rule in RULES if rule.query.endswith(_SPIKE))
)
"""Kinds of spikes with the query of each."""
_GAUGES: Final = {
    rule.metric: rule.query
    for rule in RULES
    if rule.source == "database" and not rule.query.endswith(_SPIKE)
}
"""Metric -> its query, for each other rule on the database."""
_FRESH_SECONDS: Final = 15.0


class JudgeMetrics(Collector):
    """A Prometheus collector of these metrics; register it with the registry of the process.

    If the database is down, only these metrics are missing and `mast_trace_database_up` is 0.

    Args:
        store: the database.
        fresh: seconds for which a result is used, so that several readers cost as much as one.
        clock: returns monotonic seconds.
    """

    def __init__(
        self,
        store: Store,
        *,
        fresh: float = _FRESH_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._fresh = fresh
        self._clock = clock
        self._lock = threading.Lock()
        self._metrics: list[Metric] = []
        self._read_at: float | None = None
        self._judged = _MonotonicTotals()
        self._found = _MonotonicTotals()
        self._examined = _MonotonicTotals()

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics, at most a few seconds old."""
        with self._lock:
            now = self._clock()
            if self._read_at is None or now - self._read_at >= self._fresh:
                self._metrics = self._read()
                self._read_at = now
            metrics = self._metrics
        yield from metrics

    def describe(self) -> list[Metric]:
        """Return nothing at registration: the database may not be there yet."""
        return []

    def _read(self) -> list[Metric]:
        try:
            metrics = [*self._totals(), *self._numbers(datetime.now(timezone.utc))]
            up = 1.0
        except StorageError as error:
            logger.warning("metrics of the database are unavailable: %s", error)
            metrics, up = [], 0.0
        meaning = "Whether the database answers."
        return [*metrics, GaugeMetricFamily("mast_trace_database_up", meaning, value=up)]

    def _totals(self) -> Iterator[Metric]:
        judged = CounterMetricFamily("mast_trace_runs_judged", "Judged runs.", labels=_GROUP)
        found = CounterMetricFamily(
            "mast_trace_runs_with_mode",
            "Judged runs that show a failure mode of a category.",
            labels=(*_GROUP, "category"),
        )
        examined = CounterMetricFamily(
            "mast_trace_runs_examined",
            "Judged runs in which a failure mode of a category was looked for.",
            labels=(*_GROUP, "category"),
        )
        for row in QUERIES["judged_totals"].run(self._store):
            group = (row["Service"], row["Framework"])
            judged.add_metric(group, self._judged.seen(group, row["Judged"]))
            for category in Category:
                key = (*group, category.name.lower())
                name = category.name.lower()
                found.add_metric(key, self._found.seen(key, row[name]))
                examined.add_metric(key, self._examined.seen(key, row[f"{name}_examined"]))
        for totals in (self._judged, self._found, self._examined):
            totals.read_before = True
        yield from (judged, found, examined)

    def _numbers(self, now: datetime) -> Iterator[Metric]:
        """The numbers that the alert rules compare."""
        spikes = GaugeMetricFamily(
            "mast_trace_spike_evidence",
            "Minus the logarithm of the probability of so many hits at the rate of the last week.",
            labels=("kind", *_GROUP, "mode"),
        )
        for kind in _SPIKES:
            for row in self._rows(f"{kind}{_SPIKE}", now):
                labels = (kind, row["service"], row["framework"], row.get("mode", ""))
                spikes.add_metric(labels, row["Evidence"])
        yield spikes
        for metric, query in _GAUGES.items():
            yield self._gauge(metric, query, now)

    def _gauge(self, metric: str, query: str, now: datetime) -> Metric:
        *labels, number = QUERIES[query].columns
        gauge = GaugeMetricFamily(metric, QUERIES[query].meaning, labels=labels)
        for row in self._rows(query, now):
            gauge.add_metric([row[label] for label in labels], row[number])
        return gauge

    def _rows(self, query: str, now: datetime) -> list[dict[str, Any]]:
        return QUERIES[query].run(self._store, until=now)


class _MonotonicTotals:
    """Counters of totals that may shrink.

    A total shrinks when a run is judged anew or old runs are deleted; Prometheus would take that
    for a restart and count the whole total once more. So only additions after this process began
    are counted, as in its other counters.
    """

    def __init__(self) -> None:
        self._last: dict[tuple[str, ...], float] = {}
        self._counted: dict[tuple[str, ...], float] = {}
        self.read_before = False

    def seen(self, key: tuple[str, ...], total: float) -> float:
        """Return the counter after its total was read."""
        # The first total is from before the start; a group that appears later began at 0.
        before = self._last.get(key, 0.0 if self.read_before else total)
        self._last[key] = total
        self._counted[key] = self._counted.get(key, 0.0) + max(total - before, 0.0)
        return self._counted[key]
