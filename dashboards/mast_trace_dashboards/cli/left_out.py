"""Thinning of successful runs in a terminal, and the numbers of runs that were left out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.progress import Progress
from rich.table import Table

from mast_trace_collector.storage.thinning import Thinned, thin
from mast_trace_dashboards.cli.output import console, plain, print_json
from mast_trace_dashboards.queries import QUERIES

if TYPE_CHECKING:
    from datetime import datetime

    from mast_trace_collector.storage import Store


def thin_shown(store: Store, before: datetime, share: float, *, project: str | None) -> Thinned:
    """Thin the runs, with a progress bar on a terminal; see `mast_trace_collector.storage.thinning.thin`."""
    shown = console(stderr=True)
    with Progress(console=shown, transient=True, disable=not shown.is_terminal) as progress:
        task = progress.add_task("Choosing, day by day", total=None)

        def advance(done: int, days: int) -> None:
            label = "Choosing, day by day" if done < days else "Deleting spans"
            progress.update(task, completed=done, total=days, description=label)

        return thin(store, before, share, project=project, progress=advance)


def words_of(thinned: Thinned) -> str:
    """Return the numbers of runs and spans."""
    text = f"{thinned.runs:,} runs with {thinned.spans:,} spans"
    if thinned.resumed:
        text += f", of which {thinned.resumed:,} are left from an interruption"
    return text


def show_left_out(store: Store, project: str | None, *, as_json: bool) -> None:
    """Show how many runs were left out, by project, service and day."""
    rows = QUERIES["left_out"].run(store, projects=[project] if project else [])
    if as_json:
        print_json(rows)
        return
    if not rows:
        console().print("No run was left out.")
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("DAY", "PROJECT", "SERVICE"):
        table.add_column(name, overflow="fold")
    for name in ("RUNS", "SPANS"):
        table.add_column(name, justify="right")
    for row in rows:
        table.add_row(
            str(row["Day"]),
            plain(row["Project"]),
            plain(row["Service"]),
            f"{row['Runs']:,}",
            f"{row['LeftSpans']:,}",
        )
    console().print(table)
