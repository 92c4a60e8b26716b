"""Repairs the totals of stored runs in the background."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING

from mast_trace.exceptions import StorageError
from mast_trace_collector.storage.migrations import repair

if TYPE_CHECKING:
    from mast_trace_collector.storage.store import Store

logger = logging.getLogger(__name__)

_SECONDS_BEFORE_ANOTHER_TRY = 30.0


class RepairLater(threading.Thread):
    """A background repair, retried until the database permits it.

    Args:
        store: one whose schema is up to date except for the repair.
    """

    def __init__(self, store: Store) -> None:
        super().__init__(name="repair-totals", daemon=True)
        self._store = store
        self._stopped = threading.Event()

    def run(self) -> None:
        """Repair, and record that it is done."""
        while not self._stopped.is_set():
            try:
                repair(self._store, self._stopped)
            except StorageError as error:
                logger.warning("totals of stored runs are not exact yet: %s", error)
                self._stopped.wait(_SECONDS_BEFORE_ANOTHER_TRY)
            else:
                return

    def stop(self) -> None:
        """Stop after the present piece; the next start continues from there."""
        self._stopped.set()
        if self.is_alive():
            self.join()
