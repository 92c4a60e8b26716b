"""`mast-trace mcp`: runs and verdicts for programs that speak the Model Context Protocol."""

from __future__ import annotations

from contextlib import nullcontext
from importlib.util import find_spec
from typing import Annotated

import typer

from mast_trace.exceptions import ConfigurationError
from mast_trace_collector.config import CollectorConfig
from mast_trace_collector.storage.project_store import store_of_project
from mast_trace_dashboards.cli.open_store import open_store
from mast_trace_dashboards.cli.options import ConfigFile, DataDir, Project, Url


def mcp(
    allow_writes: Annotated[
        bool, typer.Option("--allow-writes", help="Labels and outcomes may be recorded.")
    ] = False,
    project: Project = None,
    url: Url = None,
    data_dir: DataDir = None,
    config: ConfigFile = None,
) -> None:
    """Serve runs, verdicts, steps and queries to a coding assistant, over standard input and output.

    The assistant starts this command itself. Over HTTP, `mast-trace up` and `mast-trace web` serve the
    same under `/mcp`, with the keys of the web view.

    Example: `claude mcp add runs -- mast-trace mcp`
    """
    if find_spec("mcp") is None:
        raise ConfigurationError(
            "the package `mcp` is not installed: pip install 'mast-trace[mcp,embedded]'"
        )
    # The protocol's package is slow to import, and no other command needs it.
    from mast_trace_dashboards.mcp_server.server import server_on

    idle = CollectorConfig.load(config).run_idle_seconds
    with open_store(url, data_dir, config) as whole:
        confined = nullcontext(whole) if project is None else store_of_project(whole, project)
        with confined as store:
            server_on(store, writes=allow_writes, idle=idle).run("stdio")
