"""`mast-trace web`."""

from __future__ import annotations

import asyncio
from typing import Annotated

import typer

from mast_trace.exceptions import ConfigurationError
from mast_trace_collector.config import CollectorConfig
from mast_trace_collector.logs import configure_logging
from mast_trace_collector.storage import Store
from mast_trace_dashboards.cli.open_store import locate
from mast_trace_dashboards.cli.options import AsJson, ConfigFile, DataDir, ReadyFile, Url
from mast_trace_dashboards.cli.output import console, print_json_line
from mast_trace_dashboards.cli.until_stopped import address_table, not_ready, ready, stop_signal
from mast_trace_dashboards.local import announcement
from mast_trace_dashboards.mcp_server.endpoint import endpoints
from mast_trace_dashboards.web.config import WebConfig


def web(
    host: Annotated[
        str | None,
        typer.Option(help="Address that the view listens on.", show_default="127.0.0.1"),
    ] = None,
    port: Annotated[
        int | None, typer.Option(help="Port of the view; 0: a free one.", show_default="8680")
    ] = None,
    data_dir: DataDir = None,
    url: Url = None,
    config: ConfigFile = None,
    ready_file: ReadyFile = None,
    as_json: AsJson = False,
) -> None:
    """Serve the web view alone, beside a ClickHouse server or a running `mast-trace up`.

    The operator's token (setting web_token) shows all projects, a project's key that project alone;
    a proxy that authenticates people can name them (web_trusted_proxies).

    Example: `mast-trace web --url http://reader:secret@clickhouse:8123/mast_trace --host 0.0.0.0`
    """
    settings = WebConfig.load(config, web_host=host, web_port=port)
    collector = CollectorConfig.load(config, data_dir=data_dir, database_url=url or None)
    if not collector.database_url and announcement.find(collector.data_dir) is None:
        # Opening the folder here would keep `up` from starting.
        raise ConfigurationError(
            f"no `mast-trace up` is running on {collector.data_dir}: start it (it serves the web "
            "view itself), or name a ClickHouse server by --url"
        )
    address = locate(url, data_dir, config)
    configure_logging(collector)
    asyncio.run(_web(address, settings, collector, ready_file, as_json=as_json))


async def _web(
    address: str,
    settings: WebConfig,
    collector: CollectorConfig,
    ready_file: ReadyFile,
    *,
    as_json: bool,
) -> None:
    # Servers are slow to import, and no other command needs them.
    from mast_trace_dashboards.web.server import WebView

    stop = stop_signal(collector.shutdown_timeout_seconds)
    # The view starts without a database: /readyz and the pages report that it is down.
    with Store.open(address, connect=False) as store:
        idle = collector.run_idle_seconds
        mounted = endpoints(store, writes=settings.web_mcp_writes, idle=idle)
        view = WebView(
            store,
            settings,
            collector.keys_file,
            idle=idle,
            mounted=mounted,
            settings=(collector,),
        )
        await view.start()
        try:
            addresses = {"web": view.address, "store": store.url}
            ready(addresses, ready_file)
            if as_json:
                print_json_line({"event": "ready", **addresses})
            else:
                sign_in = {"sign in": view.ways_in} if view.ways_in else {}
                told = {"look at runs": view.address, **sign_in, "from": store.url}
                console().print(address_table(told))
            await stop.wait()
        finally:
            await view.stop()
            not_ready(ready_file)
