"""`mast-trace confirm work`: confirms failed runs beside the program, under the budget of a day."""

from __future__ import annotations

import signal
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mast_trace_collector.config import CollectorConfig
from mast_trace_dashboards.cli.open_store import open_store
from mast_trace_dashboards.cli.options import DataDir, Url
from mast_trace_dashboards.cli.output import console, plain, warn
from mast_trace_lab.confirm.work import ConfirmWorker
from mast_trace_lab.confirm.work_config import load_work_config

if TYPE_CHECKING:
    from mast_trace_lab.confirm.work import Handled


def work(
    config: Annotated[
        Path,
        typer.Option(
            "--config",
            help="TOML file with the commands of each service and the budget of a day.",
            show_default=False,
        ),
    ],
    once: Annotated[
        bool, typer.Option("--once", help="Confirm the failed runs of now, then stop.")
    ] = False,
    quiet: Annotated[
        float, typer.Option(min=0.0, metavar="SECONDS", help="Leave newer runs to the judge first.")
    ] = 60.0,
    url: Url = None,
    data_dir: DataDir = None,
) -> None:
    """Confirm failed runs as they come, until Ctrl-C, under a daily budget of calls and dollars.

    Commands come from this file alone, never from the store or from a trace. Several workers of one
    machine share the budget and never replay the same run.

    Example: `mast-trace confirm work --config confirm.toml`
    """
    settings = load_work_config(config)
    folder = CollectorConfig.load(None, data_dir=data_dir).data_dir / "confirm"
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: _end(stop))
    with open_store(url, data_dir) as store:
        worker = ConfirmWorker(store, settings, folder, quiet=quiet, told=_tell)
        warn("Confirming failed runs; Ctrl-C stops.")
        try:
            if once:
                worker.run_once(stop)
            else:
                worker.run(stop)
        except KeyboardInterrupt:
            warn("Stopped. The results so far are stored; the next worker goes on after them.")


def _end(stop: threading.Event) -> None:
    """Stop the worker, and its running replay with it."""
    stop.set()
    raise KeyboardInterrupt


def _tell(handled: Handled) -> None:
    ending = f"{handled.ending}; " if handled.ending and handled.stopped else handled.ending
    later = f"to be continued: {handled.stopped}" if handled.stopped else ""
    console().print(plain(f"{handled.trace_id[:12]} {handled.service}: {ending}{later}"))
