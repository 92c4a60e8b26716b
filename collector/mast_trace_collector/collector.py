"""The `Collector`: receivers, spool and pipelines, which start and stop together, and its numbers of runs."""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from prometheus_client import registry
from prometheus_client.core import GaugeMetricFamily, Metric

from mast_trace.exceptions import StorageError
from mast_trace_collector.http_server.limits import ASGIApp, HTTPLimits
from mast_trace_collector.http_server.server import HTTPServer
from mast_trace_collector.pipeline import Pipeline
from mast_trace_collector.receivers.ingest import Ingest
from mast_trace_collector.receivers.otlp_grpc import OTLPGRPCReceiver
from mast_trace_collector.receivers.otlp_http import Operations, OTLPHTTPReceiver
from mast_trace_collector.security import ProjectKeys, check_bind
from mast_trace_collector.spool import RequestRefused
from mast_trace_collector.storage.log_writer import LogWriter
from mast_trace_collector.storage.span_writer import SpanWriter
from mast_trace_collector.telemetry import CollectorMetrics

if TYPE_CHECKING:
    from mast_trace_collector.config import CollectorConfig
    from mast_trace_collector.exporter import Writer
    from mast_trace_collector.storage import Store

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


class RunMetrics(registry.Collector):
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


# Python lets a thread compute for 5 ms before another gets its turn. A receiver needs many turns
# for one request while a batch is being transformed: with a shorter interval it answers several
# times sooner, and the batch takes hardly longer.
_SWITCH_INTERVAL = 0.0005
_PART_OF_FILES = 0.5


class Collector:
    """Receives OTLP, makes it durable, acknowledges it, and stores it.

    Args:
        config: the settings.
        store: the database, already migrated; the caller closes it.
        app: an ASGI application that serves all HTTP paths that are not the collector's.
        writer: stores the spans; by default a `SpanWriter` on the store.

    Attributes:
        without_tables: why the tables are not known to be there yet, or "".

    Raises:
        ConfigurationError: the settings cannot be used together, or the keys cannot be read.
    """

    def __init__(
        self,
        config: CollectorConfig,
        store: Store | None = None,
        *,
        app: ASGIApp | None = None,
        writer: Writer | None = None,
    ) -> None:
        check_bind(config)
        if writer is None:
            if store is None:
                raise TypeError("a collector needs a store or a writer")
            writer = SpanWriter(store)
        self._config = config
        self._keys = ProjectKeys(config.keys_file) if config.keys_file else None
        self.metrics = CollectorMetrics()
        self._pipelines = [Pipeline.of_spans(config, writer, self.metrics)]
        if store is not None:
            self._pipelines.append(Pipeline.of_logs(config, LogWriter(store), self.metrics))
            self.metrics.registry.register(RunMetrics(store, idle=config.run_idle_seconds))
        self.dead_letters = self._pipelines[0].dead_letters
        self._ingest = Ingest(
            {pipeline.signal: pipeline.spool for pipeline in self._pipelines},
            config,
            self._keys,
            {pipeline.signal: pipeline.metrics for pipeline in self._pipelines},
        )
        self._http = self._http_server(app)
        self._grpc = OTLPGRPCReceiver(self._ingest, config)
        self.without_tables = ""
        self._running = False
        self._usual_switch_interval = sys.getswitchinterval()
        self.metrics.watch(
            "damaged_files",
            "Damaged files of spools and dead letters, set aside now.",
            lambda: sum(pipeline.damaged_files for pipeline in self._pipelines),
        )
        self.metrics.watch(
            "up", "1 while spans are accepted.", lambda: float(bool(self.readiness()["ready"]))
        )

    def _http_server(self, app: ASGIApp | None) -> HTTPServer:
        config = self._config
        operations = Operations(self.metrics, self._ingest, self.readiness, app)
        tls = None
        if config.tls_cert_file is not None and config.tls_key_file is not None:
            tls = (config.tls_cert_file, config.tls_key_file)
        return HTTPServer(
            OTLPHTTPReceiver(self._ingest, config, operations),
            config.host,
            config.http_port,
            limits=HTTPLimits.of(config),
            paced=False,
            part=_PART_OF_FILES,
            tls=tls,
            refused=self.metrics.refusals("receiver"),
        )

    @property
    def http_address(self) -> str:
        """URL of OTLP over HTTP, such as ``http://127.0.0.1:4318``; empty before the start."""
        return self._http.address

    @property
    def grpc_address(self) -> str:
        """Host and port of OTLP over gRPC; empty before the start or when switched off."""
        return self._grpc.address

    def readiness(self) -> dict[str, Any]:
        """Return whether spans are accepted now, the reason if not, and the state of the database.

        After a failed write it tries the disk, which may take long.
        """
        reason = "" if self._running else "the collector is not running"
        try:
            self._pipelines[0].spool.check_again()
        except RequestRefused as error:
            reason = str(error)
        trouble = [
            pipeline.exporter.trouble for pipeline in self._pipelines if pipeline.exporter.trouble
        ]
        return {
            "ready": not reason,
            "reason": reason,
            "database": trouble[0] if trouble else self.without_tables or "ok",
            "waiting_bytes": sum(pipeline.spool.waiting_bytes for pipeline in self._pipelines),
        }

    async def start(self) -> None:
        """Recover the spool and begin to receive.

        Raises:
            ConfigurationError: an address cannot be listened on.
            CollectorError: the spool's folder is in use or unusable.
        """
        await asyncio.to_thread(self._open)
        sys.setswitchinterval(_SWITCH_INTERVAL)
        self._running = True
        for pipeline in self._pipelines:
            pipeline.exporter.start()
        try:
            await self._http.start()
            if self._config.grpc_enabled:
                await self._grpc.start()
        except BaseException:
            await self.stop(drain=False)
            raise

    def _open(self) -> None:
        for number, pipeline in enumerate(self._pipelines):
            try:
                pipeline.open()
            except BaseException:
                for opened in self._pipelines[:number]:
                    opened.spool.close()
                    opened.spool.release()
                raise

    async def stop(self, *, drain: bool = True) -> None:
        """Stop receiving, answer requests in flight, and store what waits in the spool.

        Safe to call before `start` and more than once.

        Args:
            drain: store waiting requests, for at most the configured time; the rest, or all of them
                without draining, are stored after the next start.
        """
        if not self._running:
            return
        self._running = False
        self._ingest.stop_reading()
        await asyncio.gather(self._http.stop(), self._grpc.stop())
        await asyncio.to_thread(self._finish, drain=drain)
        sys.setswitchinterval(self._usual_switch_interval)

    def _finish(self, *, drain: bool) -> None:
        self._ingest.close()
        for pipeline in self._pipelines:
            pipeline.close(self._config.drain_timeout_seconds, drain=drain)
