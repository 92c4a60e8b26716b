"""Stores the content of a spool without receiving anything."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mast_trace_collector.pipeline import Pipeline
from mast_trace_collector.storage.log_writer import LogWriter
from mast_trace_collector.storage.span_writer import SpanWriter
from mast_trace_collector.telemetry import CollectorMetrics

if TYPE_CHECKING:
    from mast_trace_collector.config import CollectorConfig
    from mast_trace_collector.storage import Store


def drain(store: Store, config: CollectorConfig) -> int:
    """Store what waits; return the number of spans and log records that could not be stored.

    Raises:
        CollectorError: another process uses the spool.
    """
    metrics = CollectorMetrics()
    pipelines = []
    if config.spool_dir.is_dir():
        pipelines.append(Pipeline.of_spans(config, SpanWriter(store), metrics))
    if config.log_spool_dir.is_dir():
        pipelines.append(Pipeline.of_logs(config, LogWriter(store), metrics))
    left = 0
    for pipeline in pipelines:
        pipeline.open()
        pipeline.exporter.start()
        pipeline.close(config.drain_timeout_seconds, drain=True)
        left += pipeline.spool.waiting_items
    return left
