"""Shell completion of run ids."""

from __future__ import annotations

from typer import Context

from mast_trace.exceptions import MastTraceError
from mast_trace_dashboards.cli.open_store import open_store
from mast_trace_dashboards.cli.render import ID_SHOWN
from mast_trace_dashboards.queries import QUERIES

_OFFERED = 30


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
