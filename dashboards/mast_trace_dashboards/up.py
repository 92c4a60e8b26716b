"""Everything in one process: receivers, embedded store, judge, web view, ClickHouse endpoint."""

from __future__ import annotations

import asyncio
import os
import secrets
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from mast_trace.exceptions import ConfigurationError, MastTraceError
from mast_trace_collector.clickhouse_http import ClickHouseHTTP
from mast_trace_collector.collector import Collector
from mast_trace_collector.receivers.http_server import HTTPServer
from mast_trace_collector.security import ProjectKeys
from mast_trace_collector.storage import Store, migrate
from mast_trace_collector.storage.damage import warn_of_damaged_parts
from mast_trace_dashboards import state
from mast_trace_dashboards.judge_metrics import JudgeMetrics
from mast_trace_dashboards.web.app import web_app
from mast_trace_judge.judge import Judge
from mast_trace_judge.ledger import StoreLedger
from mast_trace_judge.worker import Worker

if TYPE_CHECKING:
    from mast_trace_collector.config import CollectorConfig
    from mast_trace_dashboards.up_config import UpConfig
    from mast_trace_judge.config import JudgeConfig, WorkerConfig

_LOOPBACK = "127.0.0.1"
_LOOPBACK_NAMES = ("127.0.0.1", "localhost", "::1")


class Up:
    """A running mast-trace.

    Attributes:
        store: the database, once started.
        worker: the judge's worker; None if nothing is judged.
    """

    store: Store
    worker: Worker | None = None

    def __init__(
        self,
        config: UpConfig,
        collector: CollectorConfig,
        judge: JudgeConfig,
        worker: WorkerConfig,
    ) -> None:
        self.config = config
        self._collector_config = collector
        self._judge_config = judge
        self._worker_config = worker
        self._parts = AsyncExitStack()
        self._working: asyncio.Task[None] | None = None

    @property
    def kept_password_file(self) -> Path | None:
        """Where the ClickHouse endpoint's password is; None if there is none, or it was set."""
        if not self.store.embedded_path or self.config.clickhouse_password.get_secret_value():
            return None
        return _password_file(self._collector_config.data_dir.absolute())

    @property
    def judged_by(self) -> str:
        """What judges, in words."""
        if not self.config.judge_enabled:
            return "off"
        if self._judge_config.uses_model:
            return f"rules, local attribution and {', '.join(self._judge_config.models)}"
        return "rules and local attribution (no model: MAST_TRACE_JUDGE_MODEL is not set)"

    async def start(self) -> state.Running:
        """Start every part, and tell other processes where they are.

        Raises:
            StorageError: the database cannot be opened, for another process is using it.
            ConfigurationError: a port is taken, or a setting cannot be used.
        """
        async with AsyncExitStack() as parts:
            running = await self._start(parts)
            self._parts = parts.pop_all()
        return running

    async def wait(self, stop: asyncio.Event) -> None:
        """Return when ``stop`` is set.

        Raises:
            MastTraceError: the judge's worker has died, so that nothing would be judged any more.
        """
        waiting = asyncio.create_task(stop.wait())
        tasks = {waiting, self._working} if self._working else {waiting}
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        if self._working is not None and self._working.done() and not stop.is_set():
            error = self._working.exception()
            raise MastTraceError(f"the judge's worker ended: {error!r}") from error

    async def stop(self) -> None:
        """Stop every part; what was received is stored first. May be called twice."""
        await self._parts.aclose()

    async def _start(self, parts: AsyncExitStack) -> state.Running:
        config = self._collector_config
        data_dir = config.data_dir.absolute()
        data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.store = await asyncio.to_thread(Store.open, config.store_url)
        parts.callback(self.store.close)
        await asyncio.to_thread(migrate, self.store)

        clickhouse, owner = config.store_url, ""
        if self.store.embedded_path:
            await asyncio.to_thread(warn_of_damaged_parts, self.store)
            clickhouse, owner = await self._serve_clickhouse(parts, data_dir)
        if self.config.judge_enabled:
            await self._start_judge(parts)
        collector = Collector(config, self.store)
        collector.metrics.registry.register(JudgeMetrics(self.store))
        await collector.start()
        # Stopped before the judge: what it drains may still be judged.
        parts.push_async_callback(collector.stop)

        web = await self._serve_web(parts)
        running = state.Running(
            pid=os.getpid(),
            data_dir=str(data_dir),
            clickhouse=clickhouse,
            otlp_http=collector.http_address,
            otlp_grpc=collector.grpc_address,
            owner=owner,
            web=web,
        )
        state.announce(running)
        parts.callback(state.withdraw, data_dir)
        return running

    async def _serve_clickhouse(self, parts: AsyncExitStack, data_dir: Path) -> tuple[str, str]:
        password = self.config.clickhouse_password.get_secret_value() or kept_password(data_dir)
        token = secrets.token_urlsafe(24)
        keys_file = self._collector_config.keys_file
        keys = ProjectKeys(keys_file) if keys_file else None
        app = ClickHouseHTTP(self.store, password=password, keys=keys, write_token=token)
        parts.callback(app.close)
        server = HTTPServer(app, _LOOPBACK, self.config.clickhouse_port)
        await server.start()
        parts.push_async_callback(server.stop)
        place = f"{server.address.removeprefix('http://')}/{self.store.database}"
        return f"http://default:{quote(password, safe='')}@{place}", f"http://owner:{token}@{place}"

    async def _serve_web(self, parts: AsyncExitStack) -> str:
        token = self.config.web_token.get_secret_value()
        if not token and self.config.web_host not in _LOOPBACK_NAMES:
            raise ConfigurationError(
                f"the web view on {self.config.web_host} could be read by anyone: set "
                "MAST_TRACE_WEB_TOKEN, or serve it on 127.0.0.1"
            )
        app = web_app(self.store, token)
        server = HTTPServer(app, self.config.web_host, self.config.web_port)
        await server.start()
        parts.push_async_callback(server.stop)
        return server.address

    async def _start_judge(self, parts: AsyncExitStack) -> None:
        judge = Judge(self._judge_config, ledger=StoreLedger(self.store))
        parts.push_async_callback(judge.aclose)
        self.worker = Worker(self.store, judge, self._worker_config)
        self._working = asyncio.create_task(self.worker.run())
        parts.push_async_callback(self.worker.stop)


def kept_password(data_dir: Path) -> str:
    """Return the password that was made for this folder, making it the first time."""
    path = _password_file(data_dir)
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return path.read_text(encoding="utf-8").strip()
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        password = secrets.token_urlsafe(18)
        file.write(password + "\n")
    return password


def _password_file(data_dir: Path) -> Path:
    return Path(data_dir, "clickhouse-password")
