"""Backups of a data folder: the database and all acknowledged requests, as of one moment.

While a backup is made nothing moves from the spool to the database, so that each span is in exactly
one of them. The database's part is its own BACKUP, with checksums of every file.

The database's part of a backup: the embedded engine's own BACKUP and RESTORE.

The engine writes to one folder only, beside its own; a link in that folder leads to the backup.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import stat
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from mast_trace.exceptions import CollectorError, ConfigurationError, StorageError
from mast_trace_collector.hold import HELD_FILE, NEXT_FILE, Hold
from mast_trace_collector.storage.address import identifier, parse_address
from mast_trace_collector.storage.embedded import backups_folder
from mast_trace_collector.storage.migrations import migrations
from mast_trace_collector.storage.span_sql import literal

if TYPE_CHECKING:
    from mast_trace_collector.config import CollectorConfig
    from mast_trace_collector.storage import Store

    Say = Callable[[str], None]

_POLL_SECONDS: Final = 0.1
_REPORT_EVERY: Final = 5.0
_DONE: Final = frozenset({"BACKUP_CREATED", "RESTORED"})
_MIB: Final = 2**20

FORMAT: Final = 1
MANIFEST: Final = "backup.json"
DATABASE: Final = "clickhouse"
FILES: Final = "files"
_NOT_COPIED: Final = frozenset(
    {DATABASE, "backups", "restoring", "up.json", "up.tmp", HELD_FILE, NEXT_FILE}
)
_SEGMENTS: Final = "*.log"
_RECEIPT: Final = ".acked"
_PATIENCE: Final = 600.0


def backup_database(store: Store, engine: Path, target: Path, say: Callable[[str], None]) -> None:
    """Back the database up into a new folder.

    Args:
        store: one with the right to write.
        engine: folder of the engine.
        target: the folder to create.
        say: receives progress messages.

    Raises:
        StorageError: the engine refused, or failed.
    """
    target.mkdir(mode=0o700)
    with _reachable(engine, target) as path:
        statement = f"BACKUP DATABASE {identifier(store.database)} TO File({literal(str(path))})"
        _run(store, statement, "backing up", say)


def restore_database(
    store: Store, engine: Path, source: Path, manifest: Manifest, say: Callable[[str], None]
) -> None:
    """Restore a database into an engine that has none of its name.

    Args:
        store: opened on the engine.
        engine: folder of the engine.
        source: the folder that `backup_database` has written.
        manifest: of the backup.
        say: receives progress messages.

    Raises:
        StorageError: the engine refused, or the files are damaged.
    """
    if manifest.definitions not in {"", _definitions(source)}:
        raise StorageError("the definitions of its tables are damaged")
    with _reachable(engine, source) as path:
        names = f"{identifier(manifest.database)} AS {identifier(store.database)}"
        statement = f"RESTORE DATABASE {names} FROM File({literal(str(path))})"
        _run(store, statement, "restoring", say)


def stored_bytes(store: Store) -> int:
    """Return the bytes of the database on disk."""
    (row,) = store.query(
        "SELECT sum(bytes_on_disk) AS bytes FROM system.parts "
        "WHERE database = currentDatabase() AND active"
    )
    return int(row["bytes"])


@contextlib.contextmanager
def _reachable(engine: Path, folder: Path) -> Iterator[Path]:
    """Link a folder into the one to which the engine may write; return the link's name."""
    allowed = backups_folder(engine)
    allowed.mkdir(parents=True, exist_ok=True, mode=0o700)
    link = allowed / f"link-{uuid.uuid4().hex}"
    link.symlink_to(folder.resolve(), target_is_directory=True)
    try:
        yield link
    finally:
        link.unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            allowed.rmdir()


def _run(store: Store, statement: str, doing: str, say: Callable[[str], None]) -> None:
    """Start a statement and poll for its end: waiting for its own answer could exceed the timeout."""
    answer = _value(store, f"{statement} ASYNC")
    identity = answer[0] if isinstance(answer, list | tuple) else str(answer).split("\t")[0]
    asked = f"FROM system.backups WHERE id = {literal(identity)}"
    reported = time.monotonic()
    while (status := str(_value(store, f"SELECT toString(status) {asked}"))) not in _DONE:
        if not status.endswith("ING_BACKUP") and status != "RESTORING":
            error = str(_value(store, f"SELECT error {asked}")).partition(", Stack trace")[0]
            raise StorageError(f"{doing} the database failed ({status}): {error}")
        if time.monotonic() - reported > _REPORT_EVERY:
            reported = time.monotonic()
            size = int(_value(store, f"SELECT total_size {asked}") or 0)
            say(f"{doing}: {size / _MIB:,.0f} MiB in all")
        time.sleep(_POLL_SECONDS)


def _value(store: Store, statement: str) -> Any:
    return store.command(statement, use_database=False)


@dataclass(frozen=True)
class Manifest:
    """The description of a backup.

    Attributes:
        format: of the backup.
        made: time of the backup, in seconds since the epoch.
        schema: version of the tables.
        database: its name.
        spans: number of spans in the database; those in the spool are not counted.
        bytes: of the database, on disk.
        definitions: digest of the tables' definitions; empty in backups that were made without it.
    """

    format: int
    made: float
    schema: int
    database: str
    spans: int
    bytes: int
    definitions: str = ""


def engine_folder(config: CollectorConfig) -> Path:
    """Return the folder of the embedded engine.

    Raises:
        ConfigurationError: the database is a server.
    """
    path = parse_address(config.store_url).path
    if not path:
        raise ConfigurationError(
            "the database is a ClickHouse server, which makes backups itself: see backup.sql and "
            "restore.sql in examples/production/clickhouse; collectors' data folders hold "
            "only what waits for it"
        )
    return Path(path)


def back_up(
    store: Store,
    config: CollectorConfig,
    target: Path,
    *,
    started: float | None = None,
    say: Say = lambda _: None,
) -> Manifest:
    """Write a backup into a new folder; nothing there is complete until it has that name.

    Args:
        store: the folder's database, with the right to write.
        config: of the folder.
        target: the folder to create.
        started: start time of the process that serves the folder, in seconds since the epoch; None
            if none does.
        say: receives progress messages.

    Raises:
        ConfigurationError: the target cannot be used.
        CollectorError: requests that an earlier process acknowledged are not stored yet.
        StorageError: the database cannot be backed up.
    """
    data_dir, target = config.data_dir.absolute(), target.absolute()
    engine = engine_folder(config)
    _check_target(target, data_dir, engine, stored_bytes(store))
    partial = target.with_name(f"{target.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True, mode=0o700)
    if started is not None:
        _wait_for_what_was_left(config, started, say)
    try:
        with Hold(data_dir).take():
            copy_files(data_dir, partial / FILES)
            backup_database(store, engine, partial / DATABASE, say)
            (counted,) = store.query("SELECT count() AS spans FROM otel_traces")
        manifest = Manifest(
            format=FORMAT,
            made=round(time.time(), 3),
            schema=migrations()[-1].version,
            database=store.database,
            spans=int(counted["spans"]),
            bytes=_size(partial),
            definitions=_definitions(partial / DATABASE),
        )
        (partial / MANIFEST).write_text(json.dumps(asdict(manifest), indent=2), encoding="utf-8")
        os.sync()
        partial.rename(target)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    return manifest


def read_manifest(folder: Path) -> Manifest:
    """Return the description of a backup.

    Raises:
        ConfigurationError: the folder is no backup, or one of a newer mast-trace.
    """
    try:
        found = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        known = {each.name for each in fields(Manifest)}
        manifest = Manifest(**{name: found[name] for name in known.intersection(found)})
    except (OSError, ValueError, TypeError) as error:
        raise ConfigurationError(
            f"{folder} is no backup of `mast-trace backup`: {MANIFEST} cannot be read ({error})"
        ) from error
    newest = migrations()[-1].version
    if manifest.format > FORMAT or manifest.schema > newest:
        raise ConfigurationError(
            f"{folder} was made by a newer mast-trace (tables of version {manifest.schema}, this one "
            f"knows {newest}): upgrade mast-trace, then restore"
        )
    return manifest


def copy_files(source: Path, target: Path) -> None:
    """Copy the files of a data folder beside the database while they may be written to.

    A file that is removed meanwhile is left out. A receipt, which records how much of its segment
    is valid, is copied before the segment, so that it never covers more than the copy has.
    """
    target.mkdir(mode=0o700)
    for entry in sorted(source.iterdir(), key=lambda path: path.suffix != _RECEIPT):
        if entry.name in _NOT_COPIED:
            continue
        try:
            kind = entry.stat().st_mode
            if stat.S_ISDIR(kind):
                copy_files(entry, target / entry.name)
            elif stat.S_ISREG(kind):
                shutil.copy2(entry, target / entry.name)
        except FileNotFoundError:
            continue


def _check_target(target: Path, data_dir: Path, engine: Path, needed: int) -> None:
    if target.exists():
        raise ConfigurationError(f"{target} is there already: name a new folder")
    if target.is_relative_to(engine) or (
        # Beside `backups` itself its unfinished form would be one of the copied files.
        target.is_relative_to(data_dir) and data_dir / "backups" not in target.parents
    ):
        raise ConfigurationError(
            f"{target} is in the data folder itself: name one elsewhere, best on another disk"
        )
    above = next(folder for folder in target.parents if folder.exists())
    free = shutil.disk_usage(above).free
    if free < needed:
        raise ConfigurationError(
            f"{above} has {free / 2**20:,.0f} MiB left, and the database takes "
            f"{needed / 2**20:,.0f} MiB: free space, or name a folder on another disk"
        )


def _wait_for_what_was_left(config: CollectorConfig, started: float, say: Say) -> None:
    """Wait until the segments that the last process left are stored.

    A segment may be stored already, if the process was killed before it could record that. The
    database knows it by the segment's name; a restored database would not, and would store it
    twice.
    """
    began = time.monotonic()
    logged = False
    while left := [path for path in _segments(config) if _modified(path) < started]:
        if time.monotonic() - began > _PATIENCE:
            raise CollectorError(
                f"{len(left)} segments from before the start still wait for the database: look at "
                "/readyz, and make the backup when it stores again"
            )
        if not logged:
            say(f"waiting until {len(left)} segments of an earlier process are stored")
        logged = True
        time.sleep(0.2)


def _segments(config: CollectorConfig) -> list[Path]:
    return [
        path
        for folder in (config.spool_dir, config.log_spool_dir)
        if folder.is_dir()
        for path in folder.glob(_SEGMENTS)
    ]


def _modified(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return float("inf")


def _definitions(database: Path) -> str:
    """Return a digest of the statements that make the tables: the engine checks those of data alone."""
    files = sorted(database.rglob("*.sql"))
    return hashlib.sha256(b"\0".join(file.read_bytes() for file in files)).hexdigest()


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def check_spans(store: Store, manifest: Manifest) -> None:
    """Check that a restored database has as many spans as its backup.

    Raises:
        StorageError: the numbers differ.
    """
    (counted,) = store.query("SELECT count() AS spans FROM otel_traces")
    if int(counted["spans"]) != manifest.spans:
        raise StorageError(
            f"{counted['spans']} spans were restored, and the backup holds {manifest.spans}"
        )
