"""`mast-trace retain`: limits the age and the size of stored data."""

from __future__ import annotations

import re
from dataclasses import asdict
from typing import Annotated

import typer
from rich.table import Table

from mast_trace.exceptions import ConfigurationError
from mast_trace_collector.storage.retention import (
    Forgotten,
    beyond_age,
    beyond_size,
    set_ttl,
    shrink_to,
)
from mast_trace_dashboards.cli.open_store import open_store
from mast_trace_dashboards.cli.options import AsJson, ConfigFile, DataDir, Url
from mast_trace_dashboards.cli.output import console, plain, print_json

_SIZE = re.compile(r"(\d+)\s*([KMGT]?)i?B?", re.IGNORECASE)
_UNITS = ("", "K", "M", "G", "T")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("retain")(retain)


def retain(
    days: Annotated[
        int | None,
        typer.Option(min=0, help="Keep rows this long, from now on; 0: for ever."),
    ] = None,
    size: Annotated[
        str | None,
        typer.Option(help="Drop the oldest days now until the tables take no more: 200GB."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only report how much would be dropped.")
    ] = False,
    url: Url = None,
    data_dir: DataDir = None,
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Limit stored data by age or by size. Whole days are dropped at a time; people's labels stay.

    The age is a property of the tables and applies until it is changed. The size is checked once:
    run the command from time to time. The newest day always stays.

    Example: `mast-trace retain --days 30 --size 200GB --dry-run`
    """
    if days is None and size is None:
        raise ConfigurationError("choose a limit: --days, --size or both")
    most = None if size is None else _bytes(size)
    with open_store(url, data_dir, config) as store:
        if dry_run:
            by_age = None if days is None else beyond_age(store, days)
            by_size = None if most is None else beyond_size(store, most)
            _tell(by_age, by_size, as_json=as_json)
            return
        if days is not None:
            set_ttl(store, days)
        dropped = [] if most is None else shrink_to(store, most)
    if as_json:
        print_json({"days": days, "dropped": dropped})
        return
    if days is not None:
        console().print(f"Rows are kept {f'for {days} days' if days else 'for ever'}.")
    if most is not None:
        console().print(plain(f"Dropped: {', '.join(dropped) or 'nothing'}."))


def _tell(by_age: Forgotten | None, by_size: Forgotten | None, *, as_json: bool) -> None:
    """Show the rows that would be dropped."""
    if as_json:
        reported = {"by_age": by_age and asdict(by_age), "by_size": by_size and asdict(by_size)}
        print_json({"dry_run": True, **reported})
        return
    for why, gone in (("By age", by_age), ("By size", by_size)):
        if gone is not None:
            days = f", the days {', '.join(gone.days)}" if gone.days else ""
            size = f"about {gone.bytes / 2**20:,.1f} MiB"
            console().print(plain(f"{why}: {gone.runs:,} runs and {size} would go{days}."))
            table = Table("TABLE", "ROWS", box=None, pad_edge=False)
            for name, count in gone.rows.items():
                table.add_row(name, f"{count:,}")
            if gone.rows:
                console().print(table)
    console().print("Nothing was changed.")


def _bytes(text: str) -> int:
    """Read a size such as 200GB or 512MiB; a kilobyte is 1024 bytes here."""
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        raise ConfigurationError(f"cannot read the size {text!r}: write 200GB, or 512MB")
    number, unit = int(found[1]), _UNITS.index(found[2].upper())
    return number << 10 * unit
