"""`mast-trace retain`: limits the age and the size of stored data, and thins successful runs."""

from __future__ import annotations

import re
from dataclasses import asdict
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Annotated

import typer

from mast_trace.exceptions import ConfigurationError
from mast_trace_collector.storage.removal.retention import (
    Forgotten,
    beyond_age,
    beyond_size,
    set_ttl,
    shrink_to,
)
from mast_trace_collector.storage.removal.thinning import Thinned, beyond_sample, thin
from mast_trace_dashboards.cli.open_store import open_store
from mast_trace_dashboards.cli.options import AsJson, ConfigFile, DataDir, Project, Url
from mast_trace_dashboards.cli.output import (
    FittedTable,
    console,
    plain,
    print_json,
    say,
    shown_progress,
)
from mast_trace_dashboards.printable import counted
from mast_trace_dashboards.queries import QUERIES

if TYPE_CHECKING:
    from mast_trace_collector.storage import Store

_SIZE = re.compile(r"(\d+)\s*([KMGT]?)i?B?", re.IGNORECASE)
_UNITS = ("", "K", "M", "G", "T")


def thin_shown(store: Store, before: datetime, share: float, *, project: str | None) -> Thinned:
    """Thin the runs, with a progress bar on a terminal; see `mast_trace_collector.storage.removal.thinning.thin`."""
    with shown_progress() as bar:
        task = bar.add_task("Choosing, day by day", total=None)

        def advance(done: int, days: int) -> None:
            label = "Choosing, day by day" if done < days else "Deleting spans"
            bar.update(task, completed=done, total=days, description=label)

        return thin(store, before, share, project=project, progress=advance)


def words_of(thinned: Thinned) -> str:
    """Return the numbers of runs and spans."""
    text = f"{counted(thinned.runs, 'run')} with {counted(thinned.spans, 'span')}"
    if thinned.resumed:
        text += f", of which {thinned.resumed:,} are left from an interruption"
    return text


_STAYS = " What is left is more: the newest day stays, as do verdicts and labels."


def show_left_out(store: Store, project: str | None, *, as_json: bool) -> None:
    """Show how many runs were left out, by project, service and day."""
    rows = QUERIES["left_out"].run(store, projects=[project] if project else [])
    if as_json:
        print_json(rows)
        return
    if not rows:
        say("No run was left out.")
        return
    table = FittedTable("DAY", "PROJECT", "SERVICE", numbers=("RUNS", "SPANS"))
    for row in rows:
        table.add_row(
            str(row["Day"]),
            plain(row["Project"]),
            plain(row["Service"]),
            f"{row['Runs']:,}",
            f"{row['LeftSpans']:,}",
        )
    console().print(table)


def retain(
    days: Annotated[
        int | None,
        typer.Option(min=0, help="Keep rows this long, from now on; 0: for ever."),
    ] = None,
    successes_after: Annotated[
        int | None,
        typer.Option(
            "--successes-after",
            min=1,
            help="Leave out now the spans of successful runs that ended so many days ago; their verdicts "
            "stay.",
        ),
    ] = None,
    kept_share: Annotated[
        float,
        typer.Option("--keep", min=0, max=1, help="Share of those successful runs that is kept."),
    ] = 0.1,
    left_out: Annotated[
        bool,
        typer.Option(
            "--left-out", help="Show how many runs were left out, by project, service and day."
        ),
    ] = False,
    project: Project = None,
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
    """Limit stored data by age or by size, and keep failures longer than successes.

    By age and by size whole days are dropped; people's labels stay. `--successes-after` leaves out the spans
    and log records of successful runs but for a sample: runs that failed, that have a label or were
    replayed, and runs of unknown outcome stay whole. No share changes, because verdicts stay.

    The age is a property of the tables and applies until it is changed. The others are done once:
    run the command from time to time. The newest day always stays.

    Examples: `mast-trace retain --days 30 --size 200GB --dry-run` ·
    `mast-trace retain --days 180 --successes-after 14 --keep 0.05`
    """
    if left_out:
        with open_store(url, data_dir, config) as store:
            show_left_out(store, project, as_json=as_json)
        return
    if days is None and size is None and successes_after is None:
        raise ConfigurationError("choose a limit: --days, --size or --successes-after")
    if project is not None and (days is not None or size is not None):
        raise ConfigurationError(
            "--days and --size drop whole days of all projects: --project goes with --successes-after alone; "
            "`mast-trace erase --project NAME --before 30d` erases old runs of one"
        )
    most = None if size is None else _bytes(size)
    with open_store(url, data_dir, config) as store:
        if dry_run:
            by_age = None if days is None else beyond_age(store, days)
            by_size = None if most is None else beyond_size(store, most)
            would = (
                None
                if successes_after is None
                else beyond_sample(store, _ago(successes_after), kept_share, project=project)
            )
            _tell(by_age, by_size, would, as_json=as_json)
            return
        if days is not None:
            set_ttl(store, days)
        # Before the size: what is left out makes room for failures.
        thinned = (
            None
            if successes_after is None
            else thin_shown(store, _ago(successes_after), kept_share, project=project)
        )
        dropped = [] if most is None else shrink_to(store, most)
        is_more = most is not None and beyond_size(store, most).is_more
    if as_json:
        left = {} if thinned is None else {"left_out": asdict(thinned)}
        print_json({"days": days, "dropped": dropped, **left})
        return
    if days is not None:
        console().print(f"Rows are kept for {counted(days, 'day') if days else 'ever'}.")
    if thinned is not None:
        say(f"Left out: {words_of(thinned)}.")
    if most is not None:
        say(f"Dropped: {', '.join(dropped) or 'nothing'}.{_STAYS * is_more}")


def _ago(days: int) -> datetime:
    return datetime.now(timezone.utc) - timedelta(days=days)


def _tell(
    by_age: Forgotten | None, by_size: Forgotten | None, would: Thinned | None, *, as_json: bool
) -> None:
    """Show the rows that would be dropped."""
    if as_json:
        reported = {"by_age": by_age and asdict(by_age), "by_size": by_size and asdict(by_size)}
        print_json({"dry_run": True, **reported, "left_out": would and asdict(would)})
        return
    for why, gone in (("By age", by_age), ("By size", by_size)):
        if gone is not None:
            days = f", the days {', '.join(gone.days)}" if gone.days else ""
            size = f"about {gone.bytes / 2**20:,.1f} MiB"
            stays = _STAYS * gone.is_more
            told = f"{why}: {counted(gone.runs, 'run')} and {size} would go{days}.{stays}"
            say(told)
            table = FittedTable("TABLE", "ROWS")
            for name, count in gone.rows.items():
                table.add_row(name, f"{count:,}")
            if gone.rows:
                console().print(table)
    if would is not None:
        say(f"Of the successful runs would be left out: {words_of(would)}.")
    say("Nothing was changed.")


def _bytes(text: str) -> int:
    """Read a size such as 200GB or 512MiB; a kilobyte is 1024 bytes here."""
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        raise ConfigurationError(f"cannot read the size {text!r}: write 200GB, or 512MB")
    number, unit = int(found[1]), _UNITS.index(found[2].upper())
    return number << 10 * unit
