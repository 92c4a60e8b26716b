"""Stores what a spool holds without receiving anything."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mast_trace_collector.pipeline import Way
from mast_trace_collector.storage.log_writer import LogWriter
from mast_trace_collector.storage.span_writer import SpanWriter
from mast_trace_collector.telemetry import CollectorMetrics

if TYPE_CHECKING:
    from mast_trace_collector.config import CollectorConfig
    from mast_trace_collector.storage import Store


def drain(store: Store, config: CollectorConfig) -> int:
    """Store what waits; return how many spans and log records could not be.

    Raises:
        CollectorError: another process uses the spool.
    """
    metrics = CollectorMetrics()
    ways = []
    if config.spool_dir.is_dir():
        ways.append(Way.of_spans(config, SpanWriter(store), metrics))
    if config.log_spool_dir.is_dir():
        ways.append(Way.of_logs(config, LogWriter(store), metrics))
    left = 0
    for way in ways:
        way.open()
        way.pipeline.start()
        way.close(config.drain_timeout_seconds, drain=True)
        left += way.spool.waiting_items
    return left
