"""`mast-trace up`."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from mast_trace.running_up import announced
from mast_trace.urls import masked
from mast_trace_collector.config import CollectorConfig
from mast_trace_collector.http_server.limits import raise_limit
from mast_trace_collector.logs import configure_logging
from mast_trace_dashboards.cli.options import (
    AsJson,
    ConfigFile,
    DataDir,
    GRPCPort,
    Host,
    HTTPPort,
    ReadyFile,
    Url,
)
from mast_trace_dashboards.cli.output import FittedTable, console, print_json_line
from mast_trace_dashboards.cli.until_stopped import address_table, not_ready, ready, stop_signal
from mast_trace_dashboards.local.announcement import RunningInstance, UpConfig
from mast_trace_dashboards.web.config import WebConfig
from mast_trace_judge.config import JudgeConfig, WorkerConfig
from mast_trace_judge.pricing import PriceConfig

if TYPE_CHECKING:
    from mast_trace_dashboards.local.all_in_one import AllInOne


_WITH_KEY: Final = "OTEL_EXPORTER_OTLP_HEADERS=authorization=Bearer%20KEY"


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
    new_clickhouse_password: Annotated[
        bool,
        typer.Option(
            "--new-clickhouse-password",
            help="Make a new password for programs that read by the ClickHouse endpoint, such as "
            "Grafana, and show it once.",
        ),
    ] = False,
    ready_file: ReadyFile = None,
    as_json: AsJson = False,
) -> None:
    """Receive, store and judge runs, all in one process, until Ctrl-C.

    Example: `mast-trace up --data-dir ./traces --http-port 0 --ready-file ready.json`
    """
    # Servers are slow to import, and no other command needs them.
    from mast_trace_dashboards.local.all_in_one import AllInOne

    settings = UpConfig.load(
        config,
        clickhouse_port=clickhouse_port,
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
    started = AllInOne(
        settings,
        collector,
        JudgeConfig.load(config),
        WorkerConfig.load(config),
        WebConfig.load(config, web_port=web_port),
        PriceConfig.load(config),
        renew_password=new_clickhouse_password,
    )
    configure_logging(collector)
    raise_limit()
    seconds = collector.shutdown_timeout_seconds
    asyncio.run(_up(started, seconds, ready_file=ready_file, as_json=as_json))


async def _up(up: AllInOne, seconds: float, *, ready_file: Path | None, as_json: bool) -> None:
    stop = stop_signal(seconds)
    running = await up.start()
    try:
        ready(asdict(running), ready_file)
        if as_json:
            # Printed only on request: JSON output is often kept.
            asked = {"clickhouse_password": up.made_password} if up.renews_password else {}
            print_json_line({"event": "ready", **asdict(running), **asked})
        else:
            console().print(_addresses(running, up))
        with announced(running.otlp_http):
            await up.wait(stop)
    finally:
        await up.stop()
        not_ready(ready_file)


def _addresses(running: RunningInstance, up: AllInOne) -> FittedTable:
    read = f"{masked(running.clickhouse)} (ClickHouse)"
    password = {"  their password": f"{up.made_password} (shown this once)"}
    return address_table(
        {
            "mast-trace is ready": "Ctrl-C stops it",
            "  send spans to": f"{running.otlp_http} (OTLP/HTTP)",
            **({"": f"{running.otlp_grpc} (OTLP/gRPC)"} if running.otlp_grpc else {}),
            "  set elsewhere": f"OTEL_EXPORTER_OTLP_ENDPOINT={running.otlp_http}",
            **({"  with a key": _WITH_KEY} if up.keys_file else {}),
            "  look at runs": running.web,
            **({"  sign in": up.ways_in} if up.ways_in else {}),
            "  read them from": read,
            **(password if up.made_password else {}),
            "  data": running.data_dir,
            "  judge": up.judged_by,
            "Next": f"run agents with mast_trace.instrument(), then open {running.web}",
        }
    )
