"""Decides when a worker looks for runs that patterns do not know yet."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from mast_trace_judge.patterns.indexing import AT_ONCE, PatternIndexer

if TYPE_CHECKING:
    from collections.abc import Callable

    from mast_trace_collector.storage.store import Store

_OF_OTHERS: Final = 10.0
"""Seconds after which verdicts of other workers are looked for."""
_AT_ALL: Final = 300.0
"""Seconds after which verdicts of any time are: imported and late ones."""


class PatternKeeper:
    """Keeps patterns up to date beside the judging of runs.

    Args:
        store: of all projects.
        clock: returns monotonic seconds.
    """

    def __init__(self, store: Store, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._indexer = PatternIndexer(store)
        self._clock = clock
        self._next = 0.0
        self._next_at_all = 0.0

    def keep(self, *, judged: bool) -> int:
        """Write the rows of some runs if it is time; return how many.

        Args:
            judged: whether verdicts were stored since the last call.

        Raises:
            StorageError: the database does not answer.
        """
        now = self._clock()
        if now < self._next and not (judged and now >= self._next - _OF_OTHERS):
            return 0
        at_all = now >= self._next_at_all
        written = self._indexer.index(at_all=at_all)
        if written < AT_ONCE:
            self._next = now + _OF_OTHERS
            if at_all:
                self._next_at_all = now + _AT_ALL
        return written
