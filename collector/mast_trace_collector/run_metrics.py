"""Metrics of runs for Prometheus, computed by the database.

The database is queried in the background: a scrape never waits for it, because a collector's own
numbers are needed most while the database hangs. A scrape shows the numbers of the previous query.
"""

from __future__ import annotations

import logging
import threading
import time
from typing import TYPE_CHECKING

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from mast_trace.exceptions import StorageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prometheus_client.core import Metric

    from mast_trace_collector.storage.store import Store

logger = logging.getLogger(__name__)

_FRESH_SECONDS = 15.0
_WITHOUT_ROOT = """
    SELECT count() AS Runs FROM
    (
        SELECT max(Root) AS Root, max(LastSeen) AS Seen FROM mast_run_states
        WHERE Day >= today() - 1
        GROUP BY Project, TraceId
        HAVING Root = 0 AND max(Kind) = '' AND Seen BETWEEN now64(3) - toIntervalDay(1)
            AND now64(3) - toIntervalMillisecond({idle_ms:UInt64})
    )
"""


class RunMetrics(Collector):
    """A Prometheus collector of run metrics; register it with the registry of the process.

    Args:
        store: the database.
        idle: seconds after which a run without a root is finished.
        fresh: seconds for which an answer is used.
    """

    def __init__(self, store: Store, *, idle: float, fresh: float = _FRESH_SECONDS) -> None:
        self._store = store
        self._idle = idle
        self._fresh = fresh
        self._lock = threading.Lock()
        self._asked = float("-inf")
        self._reading = False
        self._without_root: float | None = None

    def collect(self) -> Iterator[Metric]:
        """Yield the latest numbers, and query newer ones for the next scrape."""
        with self._lock:
            known = self._without_root
            stale = time.monotonic() - self._asked >= self._fresh
            if stale and not self._reading:
                self._reading = True
                threading.Thread(target=self._read, name="run-metrics", daemon=True).start()
        if known is not None:
            yield GaugeMetricFamily(
                "mast_trace_collector_runs_without_root",
                "Runs of the last day without new spans whose root never arrived.",
                value=known,
            )

    def describe(self) -> list[Metric]:
        """Return nothing at registration: the database may not be there yet."""
        return []

    def _read(self) -> None:
        found = None
        try:
            (row,) = self._store.query(_WITHOUT_ROOT, {"idle_ms": round(self._idle * 1000)})
            found = float(row["Runs"])
        except StorageError as error:
            logger.debug("run metrics are unavailable: %s", error)
        with self._lock:
            self._without_root, self._reading, self._asked = found, False, time.monotonic()
