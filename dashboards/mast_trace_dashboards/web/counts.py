"""Counts over all runs, for pages: where they take long, the last one is shown at once and made anew in the background."""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Final, Generic, TypeVar

if TYPE_CHECKING:
    from mast_trace_collector.storage import Store


_LOG = logging.getLogger(__name__)
_MOST_COUNTS: Final = 32
LONGEST: Final = 600.0
"""Seconds after which a count is shown no more: what was erased meanwhile may be in it."""

LARGE: Final = 20_000
"""Rows from which a count is kept; below it takes a tenth of a second."""

Made = TypeVar("Made")


@dataclass(frozen=True)
class Counted(Generic[Made]):
    """A count, with its time.

    Attributes:
        made: the count.
        at: time at which it was begun.
        is_newest: False if something has been stored since; a newer count is then being made.
    """

    made: Made
    at: datetime
    is_newest: bool = True


@dataclass
class _Kept(Generic[Made]):
    counted: Counted[Made]
    version: Hashable
    begun: float
    is_renewed: bool = False


class CountCache(Generic[Made]):
    """Counts by the question that they answer, at most 32 of them.

    Args:
        clock: returns seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._generation = 0
        # Ordered by last use.
        self._kept: OrderedDict[Hashable, _Kept[Made]] = OrderedDict()

    def of(self, question: Hashable, version: Hashable, count: Callable[[], Made]) -> Counted[Made]:
        """Return the count of a question, one that was made before if there is one.

        Args:
            question: what is counted.
            version: of what is stored; a kept count of another version is renewed in the background.
            count: makes the count; it may be called in a thread of its own.
        """
        with self._lock:
            kept = self._kept.get(question)
            if kept is not None and self._clock() - kept.begun > LONGEST:
                del self._kept[question]
                kept = None
            if kept is not None:
                self._kept.move_to_end(question)
                if kept.version == version:
                    return kept.counted
                renews, kept.is_renewed = not kept.is_renewed, True
        if kept is None:
            return self._make(question, version, count)
        if renews:
            given = (question, version, count)
            threading.Thread(
                target=self._renew, args=given, name="renew a count", daemon=True
            ).start()
        return replace(kept.counted, is_newest=False)

    def forget(self) -> None:
        """Drop all counts, those that are being made too: their subject was changed, or erased."""
        with self._lock:
            self._generation += 1
            self._kept.clear()

    def _make(
        self, question: Hashable, version: Hashable, count: Callable[[], Made]
    ) -> Counted[Made]:
        generation, begun, at = self._generation, self._clock(), datetime.now(timezone.utc)
        counted = Counted(count(), at)
        with self._lock:
            before = self._kept.get(question)
            if generation != self._generation or (before is not None and before.begun > begun):
                return counted
            self._kept.pop(question, None)
            self._kept[question] = _Kept(counted, version, begun)
            while len(self._kept) > _MOST_COUNTS:
                self._kept.popitem(last=False)
        return counted

    def _renew(self, question: Hashable, version: Hashable, count: Callable[[], Made]) -> None:
        try:
            self._make(question, version, count)
        except Exception:  # noqa: BLE001  # whatever it was, the next visitor tries again
            _LOG.exception("a newer count failed, the one before is shown")
            with self._lock:
                if kept := self._kept.get(question):
                    kept.is_renewed = False


class StoredCounts(Generic[Made]):
    """The counts of a page, kept from `LARGE` rows on.

    Args:
        store: the database; one project's, if only that may be seen.
        stored: a SELECT that tells in milliseconds whether something was stored since a count: of each table
            that the page counts its rows and the newest time, those first of which it counts most.
    """

    def __init__(self, store: Store, stored: str) -> None:
        self._store = store
        self._stored = stored
        self._counts: CountCache[Made] = CountCache()
        self._rows: list[int] = []

    def of(self, question: Hashable, count: Callable[[], Made]) -> Counted[Made]:
        """Return the count of a question; see `CountCache.of`.

        Raises:
            StorageError: the database does not answer.
        """
        (stored,) = self._store.query(self._stored)
        version = tuple(stored.values())
        rows = [number for number, _ in version]
        if rows[0] < LARGE:
            return Counted(count(), datetime.now(timezone.utc))
        # Fewer rows: something was erased, and no count may show it any more. Merged parts do no harm.
        if any(now < before for now, before in zip(rows, self._rows, strict=False)):
            self.forget()
        self._rows = rows
        return self._counts.of(question, version, count)

    def forget(self) -> None:
        """Drop all counts, those that are being made too."""
        self._counts.forget()
