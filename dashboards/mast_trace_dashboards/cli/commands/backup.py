"""`mast-trace backup` and `restore`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mast_trace.exceptions import StorageError
from mast_trace_collector.config import CollectorConfig
from mast_trace_dashboards.cli.open_store import open_store
from mast_trace_dashboards.cli.options import AsJson, ConfigFile, DataDir
from mast_trace_dashboards.cli.output import print_json, say, warn
from mast_trace_dashboards.local import announcement
from mast_trace_dashboards.printable import counted

if TYPE_CHECKING:
    from mast_trace_collector.storage import Store


def backup(
    folder: Annotated[Path, typer.Argument(help="The folder to create, best on another disk.")],
    data_dir: DataDir = None,
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Back up a data folder: the database, and the requests that wait to be stored.

    It also works while `mast-trace up` runs: spans are acknowledged, wait in the spool, and become
    visible when the backup is done. A backup is complete once its folder has its name. Data that is
    erased later stays in backups until they are deleted.

    Example: `mast-trace backup /mnt/backups/$(date +%F)`
    """
    from mast_trace_collector.backup.folder import back_up, engine_folder

    settings = CollectorConfig.load(config, data_dir=data_dir)
    engine_folder(settings)
    running = announcement.find(settings.data_dir)
    with open_store(None, data_dir, config) as store:
        if running is None:
            _store_what_waits(store, settings)
        since = None if running is None else announcement.announced(settings.data_dir)
        manifest = back_up(store, settings, folder, started=since, say=warn)
    if as_json:
        print_json({"folder": str(folder.absolute()), **asdict(manifest)})
        return
    backed_up = f"{counted(manifest.spans, 'span')}, {manifest.bytes / 2**20:,.1f} MiB in {folder}."
    say(f"Backed up {backed_up}", soft_wrap=True)


def _store_what_waits(store: Store, settings: CollectorConfig) -> None:
    """Store the content of the spool of a folder without a running process, as the next start would."""
    from mast_trace_collector.pipeline import drain

    if left := drain(store, settings):
        raise StorageError(
            f"{counted(left, 'span')} that were acknowledged cannot be stored: start `mast-trace up`, read its "
            "log, and make the backup then"
        )


def restore(
    folder: Annotated[Path, typer.Argument(help="A backup made by `mast-trace backup`.")],
    data_dir: DataDir = None,
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Restore a backup into an empty data folder. Start `mast-trace up` on it afterwards.

    A backup of an older mast-trace is brought up to date by that start; one of a newer mast-trace is
    refused.

    Example: `mast-trace restore /mnt/backups/2026-03-01`
    """
    from mast_trace_collector.backup.restore import restore as bring_back

    settings = CollectorConfig.load(config, data_dir=data_dir)
    if (running := announcement.find(settings.data_dir)) is not None:
        raise StorageError(
            f"`mast-trace up` (process {running.pid}) serves {settings.data_dir}: stop it first"
        )
    manifest = bring_back(folder, settings, say=warn)
    place = settings.data_dir.absolute()
    if as_json:
        print_json({"data_dir": str(place), **asdict(manifest)})
        return
    say(
        f"Restored {counted(manifest.spans, 'span')} to {place}. Next: mast-trace up",
        soft_wrap=True,
    )
