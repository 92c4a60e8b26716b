"""Writes the facts of runs from which no more comes, judged or not, the newest first."""

from __future__ import annotations

import logging
from datetime import datetime, timedelta, timezone
from functools import partial
from typing import TYPE_CHECKING, Final

from mast_trace_collector.storage.facts import RECENT, runs_without_facts, write_facts
from mast_trace_collector.storage.removal.tombstones import AT_ONCE
from mast_trace_judge.store.apart import apart

if TYPE_CHECKING:
    from mast_trace_collector.storage.store import Store

_LOG = logging.getLogger(__name__)
_BEGINNING: Final = datetime(1970, 1, 2, tzinfo=timezone.utc)
_SKEW: Final = timedelta(minutes=15)
"""Difference of clocks that is allowed for."""
_QUIET: Final = 60.0
"""Seconds without a span after which a run's facts are written: what is stored last need not be seen last."""


class FactsIndexer:
    """Writes the facts of runs that have none for all of their spans.

    Until then they are read from the spans, so a pass may be killed at any moment, and a run whose facts
    cannot be written is missing nowhere.

    Args:
        store: of all projects.
        quiet: seconds in which nothing of a run may have come.
    """

    def __init__(self, store: Store, *, quiet: float = _QUIET) -> None:
        self._store = store
        self._quiet = quiet
        self._since = _BEGINNING

    def index(self, *, at_all: bool = False) -> int:
        """Write the facts of at most `AT_ONCE` runs; return of how many.

        Args:
            at_all: look through all runs, not only those of which something has come since the last pass.

        Raises:
            StorageError: the database does not answer.
        """
        began = datetime.now(timezone.utc)
        due = runs_without_facts(
            self._store,
            RECENT,
            since=_BEGINNING if at_all else self._since,
            limit=AT_ONCE,
            quiet=self._quiet,
        )
        refused: list[tuple[str, Exception]] = []
        if due:
            apart(
                due,
                partial(write_facts, self._store),
                lambda run, error: refused.append((run["OfTrace"], error)),
            )
        if refused:
            _LOG.warning(
                "the facts of %d runs are not written, and are read from their spans; of run %s: %s",
                len(refused),
                *refused[0],
                extra={"action": "runs_without_facts"},
            )
        if len(due) < AT_ONCE:
            self._since = began - _SKEW
        else:
            back_to = datetime.fromtimestamp(due[-1]["Seen"] / 1000, timezone.utc)
            _LOG.info("facts of %d runs are written, back to %s", len(due), back_to)
        return len(due) - len(refused)
