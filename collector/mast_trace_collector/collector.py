"""The `Collector`: receivers, spool and pipelines, which start and stop together."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING, Any

from mast_trace_collector.http_server.limits import HTTPLimits
from mast_trace_collector.http_server.server import HTTPServer
from mast_trace_collector.pipeline import Pipeline
from mast_trace_collector.receivers.ingest import Ingest
from mast_trace_collector.receivers.otlp_grpc import OTLPGRPCReceiver
from mast_trace_collector.receivers.otlp_http import Operations, OTLPHTTPReceiver
from mast_trace_collector.run_metrics import RunMetrics
from mast_trace_collector.security import ProjectKeys, check_bind
from mast_trace_collector.spool import RequestRefused
from mast_trace_collector.storage.log_writer import LogWriter
from mast_trace_collector.storage.span_writer import SpanWriter
from mast_trace_collector.telemetry import CollectorMetrics

if TYPE_CHECKING:
    from mast_trace_collector.config import CollectorConfig
    from mast_trace_collector.exporter import Writer
    from mast_trace_collector.http_server.limits import ASGIApp
    from mast_trace_collector.storage import Store

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
            "database": trouble[0] if trouble else "ok",
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
