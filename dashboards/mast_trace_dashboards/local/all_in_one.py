"""Everything in one process: receivers, embedded store, judge, web view, ClickHouse endpoint with its password."""

from __future__ import annotations

import asyncio
import logging
import os
import re
import secrets
import socket
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.request import getproxies

from mast_trace.exceptions import MastTraceError
from mast_trace.urls import parse_url, without_secrets
from mast_trace_collector.clickhouse_http import ClickHouseHTTP
from mast_trace_collector.collector import Collector
from mast_trace_collector.http_server.limits import HTTPLimits
from mast_trace_collector.http_server.owner_socket import socket_path
from mast_trace_collector.http_server.server import HTTPServer, refuse_taken
from mast_trace_collector.security import ProjectKeys, hash_of
from mast_trace_collector.storage import Store, migrate
from mast_trace_collector.storage.damage import warn_of_damaged_parts
from mast_trace_collector.storage.removal.sweep import Sweeper
from mast_trace_dashboards.alerts.metrics import JudgeMetrics
from mast_trace_dashboards.local import announcement
from mast_trace_dashboards.mcp_server.endpoint import endpoints
from mast_trace_dashboards.web.config import WebConfig
from mast_trace_dashboards.web.server import WebView
from mast_trace_dashboards.whole_files import write_whole
from mast_trace_judge.judge import Judge
from mast_trace_judge.pricing import PriceConfig
from mast_trace_judge.pricing.prices import renew_prices
from mast_trace_judge.store.ledger import StoreLedger
from mast_trace_judge.worker import Worker

if TYPE_CHECKING:
    from mast_trace_collector.config import CollectorConfig
    from mast_trace_dashboards.local.announcement import UpConfig
    from mast_trace_judge.config import JudgeConfig, WorkerConfig

logger = logging.getLogger(__name__)

NAME: Final = "clickhouse-password"
_KEPT = re.compile(r"sha256:([0-9a-f]{64})\s*")

_OPENAI: Final = "https://api.openai.com/v1"
_SECONDS: Final = 2.0
_LOOPBACK = "127.0.0.1"


class ReaderPassword:
    """The password of a data folder.

    It is long and random, so that a plain hash of it reveals nothing. A file of an earlier version,
    which holds the password itself, is replaced by its hash: the password stays valid.

    Args:
        data_dir: the folder.
        renew: generate a new password; the old one becomes invalid.

    Attributes:
        hash: of the password; see `security.hash_of`.
        made: the password, if it was generated now; it is not stored anywhere. Empty otherwise.
    """

    def __init__(self, data_dir: Path, *, renew: bool = False) -> None:
        self._path = Path(data_dir, NAME)
        self.made = ""
        kept = "" if renew else self._kept()
        if not kept:
            self.made = secrets.token_urlsafe(18)
            kept = hash_of(self.made)
            self._keep(kept)
        self.hash = kept

    def _kept(self) -> str:
        try:
            text = self._path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return ""
        if match := _KEPT.fullmatch(text):
            return match[1]
        if not text.strip():
            return ""
        kept = hash_of(text.strip())
        self._keep(kept)
        logger.info(
            "%s held the password itself; it holds its hash now, and the password stays in force",
            self._path,
        )
        return kept

    def _keep(self, kept: str) -> None:
        write_whole(self._path, f"sha256:{kept}\n", private=True)


def unreachable(config: JudgeConfig) -> str:
    """Return why no connection to the endpoint can be made; empty if one can, or if none is needed.

    Nothing is sent. Behind a proxy nothing is tried, because only the proxy could test it.
    """
    url = parse_url(config.judge_base_url or _OPENAI)
    if not config.uses_model or {url.scheme, "all"} & getproxies().keys():
        return ""
    port = url.port or (443 if url.scheme == "https" else 80)
    try:
        socket.create_connection((url.host.strip("[]"), port), timeout=_SECONDS).close()
    except OSError as error:
        return f"its endpoint {url.host}:{port} cannot be connected to: {error.strerror or error}"
    return ""


class AllInOne:
    """Receivers, database, judge and web view in one process.

    Attributes:
        store: the database, once started.
        worker: the judge's worker; None if nothing is judged.
        made_password: of the ClickHouse endpoint, if it was made at this start; else empty.
        ways_in: how people sign in to the web view; empty where nobody has to.
        keys_file: keys that senders need; None where they need none.
    """

    store: Store
    worker: Worker | None = None
    made_password: str = ""
    ways_in: str = ""

    def __init__(
        self,
        config: UpConfig,
        collector: CollectorConfig,
        judge: JudgeConfig,
        worker: WorkerConfig,
        web: WebConfig | None = None,
        prices: PriceConfig | None = None,
        *,
        renew_password: bool = False,
    ) -> None:
        self.config = config
        self.renews_password = renew_password
        self.keys_file = collector.keys_file
        self._web_config = web or WebConfig.load()
        self._prices = prices or PriceConfig.load()
        self._collector_config = collector
        self._judge_config = judge
        self._worker_config = worker
        self._parts = AsyncExitStack()
        self._working: asyncio.Task[None] | None = None
        self._away = ""

    @property
    def judged_by(self) -> str:
        """The judge's layers, in words."""
        if not self.config.judge_enabled:
            return "off"
        if self._judge_config.uses_model:
            models = ", ".join(self._judge_config.models)
            away = f" (runs are judged without it as long as {self._away})" if self._away else ""
            return f"rules, local attribution and {models}{away}"
        return f"rules and local attribution (no model: {self._judge_config.why_no_model})"

    async def start(self) -> announcement.RunningInstance:
        """Start every part, and announce their addresses.

        Raises:
            StorageError: the database cannot be opened, because another process is using it.
            ConfigurationError: a port is taken, or a setting cannot be used.
        """
        async with AsyncExitStack() as parts:
            running = await self._start(parts)
            self._parts = parts.pop_all()
        return running

    async def wait(self, stop: asyncio.Event) -> None:
        """Return when ``stop`` is set.

        Raises:
            MastTraceError: the judge's worker has died, so that no run would be judged any more.
        """
        waiting = asyncio.create_task(stop.wait())
        tasks = {waiting, self._working} if self._working else {waiting}
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        if self._working is not None and self._working.done() and not stop.is_set():
            error = self._working.exception()
            raise MastTraceError(f"the judge's worker ended: {error!r}") from error

    async def stop(self) -> None:
        """Stop every part; received spans are stored first. May be called twice."""
        await self._parts.aclose()

    async def _start(self, parts: AsyncExitStack) -> announcement.RunningInstance:
        config = self._collector_config
        data_dir = config.data_dir.absolute()
        data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.store = await asyncio.to_thread(Store.open, config.store_url)
        parts.callback(self.store.close)
        ports = [
            (config.host, config.http_port),
            (self._web_config.web_host, self._web_config.web_port),
        ]
        ports += [(config.host, config.grpc_port)] * config.grpc_enabled
        ports += [(_LOOPBACK, self.config.clickhouse_port)] * bool(self.store.embedded_path)
        refuse_taken(ports)
        await asyncio.to_thread(migrate, self.store)

        # Created before the other servers, whose refusals it counts; started after them.
        collector = Collector(config, self.store)
        sweeper = Sweeper(self.store, collector.metrics.swept_rows.inc)
        sweeper.start()
        parts.push_async_callback(asyncio.to_thread, sweeper.stop)
        clickhouse, owner = without_secrets(config.store_url), ""
        if self.store.embedded_path:
            await asyncio.to_thread(warn_of_damaged_parts, self.store)
            clickhouse, owner = await self._serve_clickhouse(
                parts, data_dir, collector.metrics.refusals("clickhouse")
            )
        worker = await self._prepare_judge(parts) if self.config.judge_enabled else None
        renewing = asyncio.create_task(renew_prices(self.store, self._prices))
        parts.push_async_callback(_cancelled, renewing)
        collector.metrics.registry.register(JudgeMetrics(self.store))
        await collector.start()
        # Stopped before the judge: the spans that it drains may still be judged.
        parts.push_async_callback(collector.stop)

        web = await self._serve_web(parts, collector.metrics.refusals("web"))
        # Judging begins when every port is open: a start that fails has judged nothing.
        if worker is not None:
            self.worker, self._working = worker, asyncio.create_task(worker.run())
        running = announcement.RunningInstance(
            pid=os.getpid(),
            data_dir=str(data_dir),
            clickhouse=clickhouse,
            otlp_http=collector.http_address,
            otlp_grpc=collector.grpc_address,
            owner=owner,
            web=web,
            needs_password=clickhouse != config.store_url and not owner,
        )
        announcement.announce(running)
        parts.callback(announcement.withdraw, data_dir)
        return running

    async def _serve_clickhouse(
        self, parts: AsyncExitStack, data_dir: Path, refused: Callable[[str], None]
    ) -> tuple[str, str]:
        given = self.config.clickhouse_password.get_secret_value()
        kept = ReaderPassword(data_dir, renew=self.renews_password) if not given else None
        self.made_password = kept.made if kept else ""
        keys_file = self._collector_config.keys_file
        keys = ProjectKeys(keys_file) if keys_file else None
        app = ClickHouseHTTP(
            self.store,
            password=given or None,
            password_hash=kept.hash if kept else None,
            keys=keys,
        )
        parts.callback(app.close)
        server = HTTPServer(
            app,
            _LOOPBACK,
            self.config.clickhouse_port,
            limits=HTTPLimits.of(self._collector_config),
            refused=refused,
        )
        await server.start()
        parts.push_async_callback(server.stop)
        place = f"{server.address.removeprefix('http://')}/{self.store.database}"
        return f"http://default@{place}", await self._serve_owner(parts, data_dir, refused)

    async def _serve_owner(
        self, parts: AsyncExitStack, data_dir: Path, refused: Callable[[str], None]
    ) -> str:
        app = ClickHouseHTTP(self.store, of_owner=True)
        parts.callback(app.close)
        server = HTTPServer(
            app,
            limits=HTTPLimits.of(self._collector_config),
            refused=refused,
            socket_path=socket_path(data_dir),
        )
        await server.start()
        parts.push_async_callback(server.stop)
        return f"{server.address}?database={self.store.database}"

    async def _serve_web(self, parts: AsyncExitStack, refused: Callable[[str], None]) -> str:
        # Users of this machine could always inspect its processes; keys protect the network.
        idle = self._collector_config.run_idle_seconds
        view = WebView(
            self.store,
            self._web_config,
            self._collector_config.keys_file,
            idle=idle,
            open_beside_keys=True,
            limits=HTTPLimits.of(self._collector_config),
            refused=refused,
            mounted=endpoints(self.store, writes=self._web_config.web_mcp_writes, idle=idle),
            settings=(
                self.config,
                self._collector_config,
                self._judge_config,
                self._worker_config,
                self._prices,
            ),
        )
        await view.start()
        parts.push_async_callback(view.stop)
        self.ways_in = view.ways_in
        return view.address

    async def _prepare_judge(self, parts: AsyncExitStack) -> Worker:
        self._away = await asyncio.to_thread(unreachable, self._judge_config)
        judge = Judge(self._judge_config, ledger=StoreLedger(self.store))
        parts.push_async_callback(judge.aclose)
        worker = Worker(self.store, judge, self._worker_config)
        parts.push_async_callback(worker.stop)
        return worker


async def _cancelled(task: asyncio.Task[None]) -> None:
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
