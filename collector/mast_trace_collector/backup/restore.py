"""Restores a backup into an empty data folder."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from mast_trace.exceptions import ConfigurationError, StorageError
from mast_trace_collector.backup.folder import (
    DATABASE,
    FILES,
    Manifest,
    check_spans,
    copy_files,
    engine_folder,
    read_manifest,
    restore_database,
)
from mast_trace_collector.storage import Store, migrate
from mast_trace_collector.storage.address import parse_address
from mast_trace_collector.storage.removal.tombstone_file import FILE as TOMBSTONES
from mast_trace_collector.storage.removal.tombstone_file import keep_in_step

if TYPE_CHECKING:
    from mast_trace_collector.config import CollectorConfig

_WORK: Final = "restoring"
_NO_TOMBSTONES: Final = (
    "there is no {file}: runs that were erased after this backup are in it again. Copy that file from the earlier data "
    "folder into this one and restore anew, or erase them once more"
)


def restore(
    source: Path, config: CollectorConfig, *, say: Callable[[str], None] = lambda _: None
) -> Manifest:
    """Restore a backup; the database appears in the folder last, and whole.

    Args:
        source: a backup made by `back_up`; it is not changed.
        config: of the folder, which is created if it is missing.
        say: receives progress messages.

    Raises:
        ConfigurationError: the source is no backup of this version or an older one, or the folder
            already holds some of the files.
        StorageError: the backup is damaged.
    """
    source = source.absolute()
    manifest = read_manifest(source)
    data_dir, engine = config.data_dir.absolute(), engine_folder(config)
    files = sorted((source / FILES).iterdir())
    kept = engine.parent / TOMBSTONES
    taken = [
        path
        for path in [engine, *(data_dir / each.name for each in files)]
        if path.exists() and path != kept
    ]
    if taken:
        raise ConfigurationError(
            f"{data_dir} holds data already ({', '.join(path.name for path in taken)}): stop what "
            "runs there, move these away, or name another folder by --data-dir"
        )
    work = data_dir / _WORK
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True, mode=0o700)
    try:
        copy_files(source / FILES, work / FILES)
        if kept.exists():
            shutil.copy2(kept, work / FILES / TOMBSTONES)
        else:
            say(_NO_TOMBSTONES.format(file=kept))
        _restore_database(source / DATABASE, work, config, manifest, say)
        for each in sorted((work / FILES).iterdir()):
            each.replace(data_dir / each.name)
        engine.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(work / DATABASE, engine)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return manifest


def _restore_database(
    source: Path,
    work: Path,
    config: CollectorConfig,
    manifest: Manifest,
    say: Callable[[str], None],
) -> None:
    engine, file = work / DATABASE, work / FILES / TOMBSTONES
    database = parse_address(config.store_url).database
    with Store.open(f"chdb://{quote(str(engine))}", database=database) as store:
        try:
            restore_database(store, engine, source, manifest, say)
            check_spans(store, manifest)
            if file.exists():
                migrate(store)
                keep_in_step(store, file)
        except StorageError as error:
            raise StorageError(
                f"the backup {source.parent} cannot be restored, and nothing was changed: {error}"
            ) from error
