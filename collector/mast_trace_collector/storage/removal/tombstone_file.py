"""Tombstones as lines of JSON: beside an embedded database, or carried from one server to another.

A backup that is restored has the tombstones of its time. The file has those of today.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Final

from mast_trace.exceptions import ConfigurationError
from mast_trace_collector.storage.removal.erasure import delete_since
from mast_trace_collector.storage.removal.tombstones import (
    Tombstone,
    find_tombstones,
    new_stamp,
    put_back,
)

if TYPE_CHECKING:
    from mast_trace_collector.storage.store import Store

FILE: Final = "tombstones.jsonl"
"""Name of the file, which is in the data folder."""


def beside(store: Store) -> Path | None:
    """Return the file of an embedded store; None for a server's."""
    return Path(store.embedded_path).parent / FILE if store.embedded_path else None


def line_of(tombstone: Tombstone) -> str:
    """Return the line of a tombstone."""
    shape = {
        "project": tombstone.project,
        "trace_id": tombstone.trace_id,
        "erased_at": tombstone.erased_at.isoformat(),
    }
    return json.dumps(shape, ensure_ascii=False)


def read_tombstones(path: Path) -> list[Tombstone]:
    """Return the tombstones of a file.

    Raises:
        ConfigurationError: it cannot be read, or a line is none.
    """
    try:
        lines = path.read_text("utf-8").splitlines()
        return [_tombstone(json.loads(line)) for line in lines]
    except OSError as error:
        raise ConfigurationError(f"cannot read {path}: {error.strerror or error}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise ConfigurationError(
            f"{path} has a line that is no tombstone of `mast-trace erase --list`: {error!r}"
        ) from error


def keep_in_step(store: Store, path: Path) -> int:
    """Have the database and a file know the same tombstones.

    Rows about runs of which only the file knew that they were erased are deleted.

    Returns:
        The number of these runs.

    Raises:
        ConfigurationError: the file cannot be read.
        StorageError: the database refused.
    """
    filed = read_tombstones(path) if path.exists() else []
    stored = {each.key: each for each in find_tombstones(store)}
    missing = [each for each in filed if each.key not in stored]
    if missing:
        stamp = new_stamp(store)
        put_back(store, stamp, missing)
        delete_since(store, stamp)
    if not path.exists() or stored.keys() - {each.key for each in filed}:
        _write(path, [*stored.values(), *missing])
    return len(missing)


def _tombstone(shape: Mapping[str, str]) -> Tombstone:
    at = datetime.fromisoformat(shape["erased_at"]).astimezone(timezone.utc)
    return Tombstone(str(shape["project"]), str(shape["trace_id"]), at)


def _write(path: Path, tombstones: Iterable[Tombstone]) -> None:
    """Replace the file; a crash leaves the old one or the new one."""
    draft = path.with_name(f"{path.name}.tmp")
    with draft.open("w", encoding="utf-8") as file:
        file.writelines(f"{line_of(each)}\n" for each in tombstones)
        file.flush()
        os.fsync(file.fileno())
    draft.chmod(0o600)
    draft.replace(path)
