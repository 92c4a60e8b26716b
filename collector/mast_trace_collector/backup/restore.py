"""Restores a backup into an empty data folder."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from mast_trace.exceptions import ConfigurationError, StorageError
from mast_trace_collector.backup.database import restore_database
from mast_trace_collector.backup.folder import (
    DATABASE,
    FILES,
    Manifest,
    check_spans,
    copy_files,
    engine_folder,
    read_manifest,
)
from mast_trace_collector.storage import Store
from mast_trace_collector.storage.address import parse_address

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from mast_trace_collector.config import CollectorConfig

_WORK: Final = "restoring"


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
    taken = [path for path in [engine, *(data_dir / each.name for each in files)] if path.exists()]
    if taken:
        raise ConfigurationError(
            f"{data_dir} holds data already ({', '.join(path.name for path in taken)}): stop what "
            "runs there, move these away, or name another folder by --data-dir"
        )
    work = data_dir / _WORK
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True, mode=0o700)
    try:
        _restore_database(source / DATABASE, work / DATABASE, config, manifest, say)
        copy_files(source / FILES, work / FILES)
        for each in sorted((work / FILES).iterdir()):
            each.rename(data_dir / each.name)
        engine.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(work / DATABASE, engine)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return manifest


def _restore_database(
    source: Path,
    engine: Path,
    config: CollectorConfig,
    manifest: Manifest,
    say: Callable[[str], None],
) -> None:
    database = parse_address(config.store_url).database
    with Store.open(f"chdb://{quote(str(engine))}", database=database) as store:
        try:
            restore_database(store, engine, source, manifest.database, say)
            check_spans(store, manifest)
        except StorageError as error:
            raise StorageError(
                f"the backup {source.parent} cannot be restored, and nothing was changed: {error}"
            ) from error
