"""`mast-trace collect dead-letters`: lists, retries and drops requests that could not be stored."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from mast_trace.exceptions import CollectorError, ConfigurationError
from mast_trace_collector.config import CollectorConfig
from mast_trace_collector.dead_letters import DeadLetters
from mast_trace_dashboards.cli.options import AsJson, ConfigFile, DataDir
from mast_trace_dashboards.cli.output import console, plain, print_json
from mast_trace_dashboards.printable import clip

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_REASON_WIDTH = 90

app = typer.Typer(
    name="dead-letters",
    help="Look at requests that could not be stored, try them again, or drop them. "
    "Works beside a running collector, on its machine.",
    no_args_is_help=True,
)
Ids = Annotated[
    list[str] | None,
    typer.Argument(help="Ids of letters, as `list` shows them.", show_default=False),
]
All = Annotated[bool, typer.Option("--all", help="All of them.")]


@app.command("list")
def list_letters(
    data_dir: DataDir = None, config: ConfigFile = None, as_json: AsJson = False
) -> None:
    """List the dead letters, oldest first, with the reason of each.

    Example: `mast-trace collect dead-letters list --json`
    """
    found = [each for folder in _folders(data_dir, config) for each in folder.letters()]
    found.sort(key=lambda letter: letter.set_aside)
    if as_json:
        print_json([asdict(letter) for letter in found])
        return
    if not found:
        console().print("There are no dead letters.")
        return
    table = Table("ID", "SET ASIDE", "ITEMS", "BYTES", "TRIES", "REASON", box=None, pad_edge=False)
    for letter in found:
        moment = datetime.fromtimestamp(letter.set_aside, timezone.utc)
        reason = clip(letter.reason, _REASON_WIDTH)
        if letter.retrying:
            reason = f"(to be retried) {reason}"
        table.add_row(
            plain(letter.id),
            f"{moment:%Y-%m-%d %H:%M:%S}Z",
            *(str(letter.items), str(letter.size), str(letter.attempts)),
            plain(reason),
        )
    console().print(table)


@app.command()
def retry(
    ids: Ids = None,
    every: All = False,
    data_dir: DataDir = None,
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Retry dead letters: the running collector stores them within seconds, or the next one does.

    A letter that fails again is set aside again. Use it once the cause is gone, for example after
    an upgrade.

    Example: `mast-trace collect dead-letters retry --all`
    """
    done = _apply(_folders(data_dir, config), DeadLetters.retry, ids, every=every)
    _report(done, "will be tried again", as_json=as_json)


@app.command()
def drop(
    ids: Ids = None,
    every: All = False,
    data_dir: DataDir = None,
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Delete dead letters for good.

    Example: `mast-trace collect dead-letters drop 000000000012-9f86d081884c7d65.3`
    """
    done = _apply(_folders(data_dir, config), DeadLetters.drop, ids, every=every)
    _report(done, "dropped", as_json=as_json)


def _folders(data_dir: Path | None, config: Path | None) -> tuple[DeadLetters, ...]:
    settings = CollectorConfig.load(config, data_dir=data_dir)
    return DeadLetters(settings.dead_letter_dir), DeadLetters(settings.dead_log_letter_dir)


def _apply(
    folders: tuple[DeadLetters, ...],
    act: Callable[[DeadLetters, list[str]], None],
    ids: list[str] | None,
    *,
    every: bool,
) -> list[str]:
    """Apply a function to letters, in any of the folders.

    Raises:
        CollectorError: a name is unknown; then no letter was changed.
    """
    if every == bool(ids):
        raise ConfigurationError("name dead letters by their ids, or all of them by --all")
    known = [[letter.id for letter in folder.letters()] for folder in folders]
    chosen = [id_ for each in known for id_ in each] if every else list(ids or [])
    for id_ in chosen:
        if not any(id_ in each for each in known):
            raise CollectorError(f"there is no dead letter {id_}")
    for folder, there in zip(folders, known, strict=True):
        act(folder, [id_ for id_ in chosen if id_ in there])
    return chosen


def _report(ids: list[str], what: str, *, as_json: bool) -> None:
    if as_json:
        print_json(ids)
    else:
        noun = "dead letter" if len(ids) == 1 else "dead letters"
        console().print(plain(f"{len(ids)} {noun} {what}."))
