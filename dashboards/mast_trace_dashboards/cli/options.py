"""Options that several commands share, and how their values are read."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from typer import Context

from mast_trace.exceptions import MastTraceError
from mast_trace_dashboards.cli.open_store import open_store
from mast_trace_dashboards.printable import ID_SHOWN
from mast_trace_dashboards.queries import QUERIES

_OFFERED = 30

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for other programs.")]
Url = Annotated[
    str | None,
    typer.Option(
        "--url",
        envvar="MAST_TRACE_DATABASE_URL",
        help="The store: http(s)://user:password@host:8123/database or chdb:///folder. "
        "Without it: the running `mast-trace up`, else its folder.",
        show_default=False,
    ),
]
DataDir = Annotated[
    Path | None,
    typer.Option(
        "--data-dir",
        envvar="MAST_TRACE_DATA_DIR",
        help="Folder of `mast-trace up`.",
        show_default="~/.local/share/mast-trace",
    ),
]
ConfigFile = Annotated[
    Path | None,
    typer.Option(
        "--config",
        envvar="MAST_TRACE_CONFIG",
        help="TOML file with the tables programs, confirm, up, web, collector, judge, worker, prices and alerts.",
        show_default=False,
    ),
]
Project = Annotated[
    str | None,
    typer.Option("--project", help="Only this project's runs.", show_default=False),
]
Since = Annotated[
    str | None,
    typer.Option(help="Only runs since then: 15m, 2h, 7d, or a time.", show_default=False),
]
Every = Annotated[float, typer.Option(min=0.2, help="Seconds between looks.")]
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
Uncertain = Annotated[
    bool,
    typer.Option(
        "--uncertain",
        help="Take labels of uncertain operators in as well; `mast-trace inject --operator list` names them.",
    ),
]


def run_ids(context: Context, incomplete: str) -> list[tuple[str, str]]:
    """Return the newest runs whose id begins with the text, each with its name; `last` is always one."""
    given = context.params
    try:
        with open_store(given.get("url"), given.get("data_dir"), given.get("config")) as store:
            rows = QUERIES["runs"].run(store, limit=_OFFERED)
    except MastTraceError:
        rows = []  # an error has no place in a shell's completion
    offered = [("last", "the newest run")]
    offered += [
        (row["TraceId"][:ID_SHOWN], f"{row['Name']} {row['Outcome'] or row['State']}")
        for row in rows
    ]
    return [(name, meaning) for name, meaning in offered if name.startswith(incomplete)]


RunName = Annotated[
    str,
    typer.Argument(help="The run's id, its beginning, or `last`.", autocompletion=run_ids),
]
