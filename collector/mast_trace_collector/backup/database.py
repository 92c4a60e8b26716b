"""The database's part of a backup: the embedded engine's own BACKUP and RESTORE.

The engine writes to one folder only, beside its own; a link in that folder leads to the backup.
"""

from __future__ import annotations

import contextlib
import time
import uuid
from typing import TYPE_CHECKING, Any, Final

from mast_trace.exceptions import StorageError
from mast_trace_collector.storage.address import identifier
from mast_trace_collector.storage.embedded import backups_folder
from mast_trace_collector.storage.span_sql import literal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from mast_trace_collector.storage import Store

_POLL_SECONDS: Final = 0.1
_REPORT_EVERY: Final = 5.0
_DONE: Final = frozenset({"BACKUP_CREATED", "RESTORED"})
_MIB: Final = 2**20


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
    store: Store, engine: Path, source: Path, database: str, say: Callable[[str], None]
) -> None:
    """Restore a database into an engine that has none of its name.

    Args:
        store: opened on the engine.
        engine: folder of the engine.
        source: the folder that `backup_database` has written.
        database: name of the database in the backup.
        say: receives progress messages.

    Raises:
        StorageError: the engine refused, or the files are damaged.
    """
    with _reachable(engine, source) as path:
        names = f"{identifier(database)} AS {identifier(store.database)}"
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
