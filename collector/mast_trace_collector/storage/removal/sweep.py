"""The sweep: deletes what arrives about erased runs, whoever wrote it.

Stock exporters write the tables directly, spools are replayed after a restart, and a verdict may be stored in the moment
of the erasure. So rows under tombstones are looked for again and again, in every table that names runs.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from mast_trace.exceptions import MastTraceError
from mast_trace_collector.storage.removal.erasure import delete_since
from mast_trace_collector.storage.removal.run_tables import TOMBSTONES, run_tables
from mast_trace_collector.storage.removal.tombstone_file import beside, keep_in_step
from mast_trace_collector.storage.removal.tombstones import (
    Key,
    new_stamp,
    put_back,
    tombstones_of,
    unfinished,
)

if TYPE_CHECKING:
    from mast_trace_collector.storage.store import Store

logger = logging.getLogger(__name__)

_ERASED: Final = f"SELECT Project, TraceId FROM {TOMBSTONES}"  # noqa: S608
_PAUSE: Final = 2.0
"""Least seconds between two sweeps."""
_LONGEST_PAUSE: Final = 300.0
_AFTER_FAILURE: Final = 10.0
_REST: Final = 30.0
"""Times the seconds that a sweep without findings took, until the next: the database is idle most of the time."""

# Numbers of rows, which the engine knows without reading any; those of a cluster's other nodes it does not know.
_FILLED: Final = f"""
SELECT cityHash64(groupArray((name, total_rows)),
        if(countIf(engine = 'Distributed') > 0, toUnixTimestamp64Milli(now64(3)), 0)) AS rows,
    sumIf(total_rows, startsWith(name, '{TOMBSTONES}')) AS tombstones
FROM (SELECT name, engine, total_rows FROM system.tables WHERE database = currentDatabase() ORDER BY name)"""  # noqa: S608


def sweep(store: Store) -> int:
    """Finish erasures that were killed, and delete the rows about erased runs that have arrived since.

    Returns:
        The number of deleted rows.

    Args:
        store: of all projects.

    Raises:
        StorageError: the database does not answer, or more rows keep coming in.
    """
    (row,) = store.query(f"SELECT count() AS n FROM {TOMBSTONES}")  # noqa: S608
    if not row["n"]:
        return 0
    deleted: Counter[str] = Counter()
    for stamp, going_on in unfinished(store):
        if not going_on:
            deleted.update(delete_since(store, stamp))
    arrived = _arrived(store)
    # A row that names several runs names living ones, too. An erasure that is going on deletes by itself.
    erased = [each for each in tombstones_of(store, arrived).values() if not each.going_on]
    if erased:
        stamp = new_stamp(store)
        put_back(store, stamp, [replace(each, arrived=arrived[each.key]) for each in erased])
        deleted.update(delete_since(store, stamp))
    if not deleted:
        return 0
    logger.warning(
        "%d rows about erased runs were there and are deleted: %s",
        deleted.total(),
        ", ".join(f"{rows} in {table}" for table, rows in sorted(deleted.items())),
        extra={"action": "erased_runs_swept", "rows": deleted.total()},
    )
    return deleted.total()


def _arrived(store: Store) -> Counter[Key]:
    """Count the rows under tombstones by run."""
    looks = [table.rows_of(_ERASED) for table in run_tables(store) if table.names_runs]
    found: Counter[Key] = Counter()
    for row in store.query(" UNION ALL ".join(looks)):
        found[row["OfProject"], row["OfTrace"]] += int(row["n"])
    return found


class Sweeper(threading.Thread):
    """Sweeps in the background for as long as a process serves its store.

    Args:
        store: of all projects.
        swept: called with the number of deleted rows.
    """

    def __init__(self, store: Store, swept: Callable[[int], object] = lambda _: None) -> None:
        super().__init__(name="sweep-erased", daemon=True)
        self._store = store
        self._file = beside(store)
        self._swept = swept
        self._stopped = threading.Event()
        self._rows = self._tombstones = -1
        self._look_again = 0.0

    def run(self) -> None:
        """Sweep until `stop`."""
        while not self._stopped.is_set():
            try:
                pause = self._step()
            except MastTraceError as error:
                logger.warning("rows about erased runs are not deleted yet: %s", error)
                self._rows, pause = -1, _AFTER_FAILURE
            except Exception:
                # Nothing may end this thread: what arrives later must still be deleted.
                logger.exception("rows about erased runs are not deleted yet")
                self._rows, pause = -1, _AFTER_FAILURE
            self._stopped.wait(pause)

    def stop(self) -> None:
        """Stop after the present sweep."""
        self._stopped.set()
        if self.is_alive():
            self.join()

    def _step(self) -> float:
        """Sweep if any rows have come; return the seconds until the next time."""
        began = time.monotonic()
        (now,) = self._store.query(_FILLED)
        if self._file is not None and now["tombstones"] != self._tombstones:
            keep_in_step(self._store, self._file)
        self._tombstones = now["tombstones"]
        if now["rows"] == self._rows and began < self._look_again:
            return _PAUSE
        if rows := sweep(self._store):
            self._swept(rows)
            # The numbers are as before it came, and would be the same when as much comes again.
            self._rows = -1
            return _PAUSE
        if unfinished(self._store):
            # Its rows stay if it is killed, and nothing else need change then.
            return _PAUSE
        # Rows that came during the sweep have changed the numbers, and are looked for the next time.
        self._rows, self._look_again = now["rows"], began + _LONGEST_PAUSE
        return min(_LONGEST_PAUSE, max(_PAUSE, _REST * (time.monotonic() - began)))
