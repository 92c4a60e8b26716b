"""Runs that `mast-trace confirm work` has dealt with, in a file that survives restarts."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

from mast_trace.exceptions import StorageError

if TYPE_CHECKING:
    from pathlib import Path

    from mast_trace_collector.storage.runs import RunSummary

_WAIT_SECONDS = 30.0
_TABLE = """
CREATE TABLE IF NOT EXISTS handled
(project TEXT, trace_id TEXT, fingerprint TEXT, ending TEXT NOT NULL,
 PRIMARY KEY (project, trace_id, fingerprint))
"""


class HandledRuns:
    """Runs whose confirmation has ended, or that cannot be confirmed.

    A run that changes, such as by a corrected outcome, has another fingerprint and is looked at again.

    Args:
        path: the file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._do(_TABLE)

    def holds(self, run: RunSummary) -> bool:
        """Return whether a run was dealt with.

        Raises:
            StorageError: the file cannot be read.
        """
        sql = "SELECT 1 FROM handled WHERE project = ? AND trace_id = ? AND fingerprint = ?"
        return bool(self._do(sql, *_key(run)))

    def add(self, run: RunSummary, ending: str) -> None:
        """Note the ending of a run: a word of a conclusion, or the reason of a refusal.

        Raises:
            StorageError: the file cannot be written.
        """
        self._do("INSERT OR REPLACE INTO handled VALUES (?, ?, ?, ?)", *_key(run), ending)

    def _do(self, sql: str, *values: str) -> list[tuple[object, ...]]:
        try:
            with (
                closing(sqlite3.connect(self._path, timeout=_WAIT_SECONDS)) as connection,
                connection,
            ):
                return connection.execute(sql, values).fetchall()
        except sqlite3.Error as error:
            raise StorageError(f"{self._path}: {error}") from error


def _key(run: RunSummary) -> tuple[str, str, str]:
    return run.project, run.trace_id, run.fingerprint
