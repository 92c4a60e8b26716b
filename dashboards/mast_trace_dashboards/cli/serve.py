"""`mast-trace up` and `mast-trace collect`."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from mast_trace.exceptions import SchemaMismatch, StorageError
from mast_trace_collector.config import CollectorConfig
from mast_trace_collector.logs import configure_logging
from mast_trace_collector.settings import masked
from mast_trace_collector.storage import Store, migrate
from mast_trace_dashboards.cli.options import AsJson, ConfigFile, DataDir, Url
from mast_trace_dashboards.cli.output import console, plain, print_json_line
from mast_trace_dashboards.up_config import UpConfig
from mast_trace_judge.config import JudgeConfig, WorkerConfig

if TYPE_CHECKING:
    from mast_trace_dashboards.state import Running
    from mast_trace_dashboards.up import Up

logger = logging.getLogger(__name__)

_KILLED = 130
Host = Annotated[
    str | None,
    typer.Option(help="Address that the receivers listen on.", show_default="127.0.0.1"),
]
HTTPPort = Annotated[
    int | None, typer.Option(help="Port of OTLP/HTTP; 0: a free one.", show_default="4318")
]
GRPCPort = Annotated[
    int | None, typer.Option(help="Port of OTLP/gRPC; 0: a free one.", show_default="4317")
]
ReadyFile = Annotated[
    Path | None,
    typer.Option(help="Write the addresses here, as JSON, when ready.", show_default=False),
]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("up")(up)
    app.command("collect")(collect)


def up(
    host: Host = None,
    http_port: HTTPPort = None,
    grpc_port: GRPCPort = None,
    clickhouse_port: Annotated[
        int | None,
        typer.Option(help="Port of the ClickHouse endpoint; 0: a free one.", show_default="8123"),
    ] = None,
    web_port: Annotated[
        int | None,
        typer.Option(help="Port of the web view; 0: a free one.", show_default="8680"),
    ] = None,
    judge: Annotated[bool, typer.Option("--judge/--no-judge", help="Judge finished runs.")] = True,
    data_dir: DataDir = None,
    url: Url = None,
    config: ConfigFile = None,
    ready_file: ReadyFile = None,
    as_json: AsJson = False,
) -> None:
    """Receive, store and judge runs, all in one process, until Ctrl-C.

    Example: `mast-trace up --data-dir ./traces --http-port 0 --ready-file ready.json`
    """
    # Servers load slowly, and no other command needs them.
    from mast_trace_dashboards.up import Up

    settings = UpConfig.load(
        config,
        clickhouse_port=clickhouse_port,
        web_port=web_port,
        judge_enabled=None if judge else False,
    )
    collector = CollectorConfig.load(
        config,
        host=host,
        http_port=http_port,
        grpc_port=grpc_port,
        data_dir=data_dir,
        database_url=url or None,
    )
    started = Up(settings, collector, JudgeConfig.load(config), WorkerConfig.load(config))
    configure_logging(collector)
    asyncio.run(_up(started, ready_file=ready_file, as_json=as_json))


async def _up(up: Up, *, ready_file: Path | None, as_json: bool) -> None:
    stop = stop_signal()
    running = await up.start()
    try:
        _ready(asdict(running), ready_file)
        if as_json:
            print_json_line({"event": "ready", **asdict(running)})
        else:
            console().print(_addresses(running, up))
        await up.wait(stop)
    finally:
        await up.stop()
        _not_ready(ready_file)


def collect(
    host: Host = None,
    http_port: HTTPPort = None,
    grpc_port: GRPCPort = None,
    data_dir: DataDir = None,
    url: Url = None,
    config: ConfigFile = None,
    ready_file: ReadyFile = None,
    as_json: AsJson = False,
) -> None:
    """Receive and store runs; judge and dashboards run elsewhere.

    Example: `mast-trace collect --url http://clickhouse:8123/mast_trace --host 0.0.0.0`
    """
    settings = CollectorConfig.load(
        config,
        host=host,
        http_port=http_port,
        grpc_port=grpc_port,
        data_dir=data_dir,
        database_url=url or None,
    )
    configure_logging(settings)
    asyncio.run(_collect(settings, ready_file, as_json=as_json))


async def _collect(settings: CollectorConfig, ready_file: Path | None, *, as_json: bool) -> None:
    from mast_trace_collector.collector import Collector

    stop = stop_signal()
    with Store.open(settings.store_url, connect=False) as store:
        await asyncio.to_thread(_migrate, store)
        collector = Collector(settings, store)
        await collector.start()
        try:
            addresses = {
                "otlp_http": collector.http_address,
                "otlp_grpc": collector.grpc_address or "",
                "store": store.url,
            }
            _ready(addresses, ready_file)
            if as_json:
                print_json_line({"event": "ready", **addresses})
            else:
                console().print(_table(addresses))
            await stop.wait()
        finally:
            await collector.stop()
            _not_ready(ready_file)


def _migrate(store: Store) -> None:
    try:
        migrate(store)
    except SchemaMismatch:
        raise
    except StorageError as error:
        if store.embedded_path:
            raise
        # A server may come back: until then the spool takes what arrives.
        logger.warning("%s; spans wait in the spool until it answers", error)


def stop_signal() -> asyncio.Event:
    """Return what SIGINT and SIGTERM set; a second one ends the process at once."""
    stop = asyncio.Event()

    def on_signal() -> None:
        if stop.is_set():
            os._exit(_KILLED)
        stop.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, on_signal)
    return stop


def _ready(addresses: dict[str, Any], path: Path | None) -> None:
    if path is None:
        return
    draft = path.with_name(path.name + ".tmp")
    draft.touch(mode=0o600)
    draft.write_text(json.dumps(addresses, indent=2), encoding="utf-8")
    draft.replace(path)


def _not_ready(path: Path | None) -> None:
    if path is not None:
        path.unlink(missing_ok=True)


def _addresses(running: Running, up: Up) -> Table:
    read = f"{masked(running.clickhouse)} (ClickHouse)"
    if up.kept_password_file is not None:
        read += f"; its password is in {up.kept_password_file}"
    return _table(
        {
            "mast-trace is ready": "Ctrl-C stops it",
            "  send spans to": f"{running.otlp_http} (OTLP/HTTP)",
            **({"": f"{running.otlp_grpc} (OTLP/gRPC)"} if running.otlp_grpc else {}),
            "  look at runs": running.web,
            "  read them from": read,
            "  data": running.data_dir,
            "  judge": up.judged_by,
            "Next": f"run agents with mast_trace.instrument(), then open {running.web}",
        }
    )


def _table(rows: dict[str, str]) -> Table:
    table = Table(box=None, show_header=False, pad_edge=False)
    for name, value in rows.items():
        table.add_row(name, plain(value))
    return table
