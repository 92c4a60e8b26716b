"""The pipeline of one signal: its spool, its exporter, its dead letters; it can be drained without receivers."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from mast_trace_collector.dead_letters import DeadLetters
from mast_trace_collector.exporter import Exporter, Writer
from mast_trace_collector.hold import Hold
from mast_trace_collector.otlp.signals import LOGS, TRACES, Signal
from mast_trace_collector.spool import Spool, SpoolLimits
from mast_trace_collector.storage.log_writer import LogWriter
from mast_trace_collector.storage.span_writer import COLUMNS_BYTES, SpanWriter
from mast_trace_collector.telemetry import CollectorMetrics

if TYPE_CHECKING:
    from mast_trace_collector.config import CollectorConfig
    from mast_trace_collector.storage import Store

logger = logging.getLogger(__name__)

_SHARE_OF_LOGS = 4


@dataclass(frozen=True)
class Pipeline:
    """The pipeline of one signal. Signals share nothing except the database."""

    signal: Signal
    spool: Spool
    exporter: Exporter
    dead_letters: DeadLetters
    metrics: CollectorMetrics

    @classmethod
    def of_spans(
        cls, config: CollectorConfig, writer: Writer, metrics: CollectorMetrics
    ) -> Pipeline:
        """Return the pipeline of spans."""
        limits = _limits(config, config.spool_max_bytes, config.batch_max_bytes)
        spool = Spool(config.spool_dir, limits)
        return cls._made(
            TRACES,
            spool,
            config.dead_letter_dir,
            writer,
            config,
            metrics,
            lanes=config.insert_threads,
        )

    @classmethod
    def of_logs(
        cls, config: CollectorConfig, writer: Writer, metrics: CollectorMetrics
    ) -> Pipeline:
        """Return the pipeline of log records, counted beside the spans of ``metrics``."""
        most = max(config.spool_max_bytes // _SHARE_OF_LOGS, 1)
        # The writer lays a segment of log records out in Python as a whole.
        limits = _limits(config, most, min(config.batch_max_bytes, COLUMNS_BYTES))
        spool = Spool(config.log_spool_dir, limits, "log records")
        counted = CollectorMetrics(logs_of=metrics)
        return cls._made(LOGS, spool, config.dead_log_letter_dir, writer, config, counted)

    @classmethod
    def _made(
        cls,
        signal: Signal,
        spool: Spool,
        dead: Path,
        writer: Writer,
        config: CollectorConfig,
        metrics: CollectorMetrics,
        lanes: int = 1,
    ) -> Pipeline:
        letters = DeadLetters(dead, signal.items.replace("_", " "))
        watch = metrics.watch
        watch("waiting_bytes", "Bytes that wait for the database.", lambda: spool.waiting_bytes)
        watch("waiting_spans", "Items that wait for the database.", lambda: spool.waiting_items)
        watch("waiting_age_seconds", "Age of the oldest item that waits.", spool.oldest_age)
        watch("dead_letters", "Requests set aside now.", lambda: len(letters))
        hold = Hold(config.data_dir)
        exporter = Exporter(spool, writer, letters, config, metrics, lanes=lanes, hold=hold)
        return cls(signal, spool, exporter, letters, metrics)

    @property
    def damaged_files(self) -> int:
        """Number of damaged files that are set aside now."""
        return self.spool.damaged_files + self.dead_letters.damaged_files

    def open(self) -> None:
        """Recover the spool.

        Raises:
            CollectorError: its folder is in use or unusable.
        """
        lost = sum(loss.lost for loss in self.spool.open())
        self.metrics.damaged_spans.inc(lost)
        self.metrics.recovered_spans.inc(self.spool.waiting_items + lost)

    def close(self, timeout: float, *, drain: bool) -> None:
        """Accept no more; store what waits, within a time, or leave it for the next start."""
        if not drain:
            self.exporter.stop(timeout, drain=False)
        self.spool.close()
        if drain:
            self.exporter.stop(timeout)
        self.spool.release()
        if self.spool.waiting_items:
            logger.info(
                "%d %s stay in the spool for the next start",
                self.spool.waiting_items,
                self.signal.items.replace("_", " "),
            )


def _limits(config: CollectorConfig, most: int, segment: int) -> SpoolLimits:
    return SpoolLimits(
        max_bytes=most,
        min_free_bytes=config.spool_min_free_bytes,
        segment_bytes=segment,
        segment_items=config.batch_max_spans,
        segment_age=config.batch_max_age_seconds,
        duplicate_window=config.duplicate_window,
    )


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
