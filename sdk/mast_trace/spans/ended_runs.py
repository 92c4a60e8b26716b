"""Which run a word that comes after its end belongs to.

A program usually learns whether a run was good after the framework's call has returned, when the
run's span has ended and is current nowhere. What remains of an ended run is its span context.
"""

from __future__ import annotations

import sys
import threading
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from opentelemetry.trace import SpanContext


class _Runs:
    """Counts the runs of a stretch of time in which always at least one was open."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open = 0
        self._runs = 0
        self._last: SpanContext | None = None

    def began(self) -> None:
        with self._lock:
            if not self._open:
                self._runs = 0
            self._open += 1
            self._runs += 1

    def ended(self, root: SpanContext) -> None:
        with self._lock:
            self._open -= 1
            self._last = root

    def only(self) -> SpanContext | None:
        """Return the run that ended last, if none ran beside it."""
        with self._lock:
            return self._last if not self._open and self._runs == 1 else None


_runs = _Runs()
_Ended = tuple[_Runs, "SpanContext"]
_in_context: ContextVar[_Ended | None] = ContextVar("mast_trace_ended_run", default=None)
_in_thread = threading.local()


def run_began() -> None:
    """Note that a run of its own, no part of another, begins."""
    _runs.began()


def run_ended(root: SpanContext) -> None:
    """Note that it ended, here: in this context and thread."""
    _in_context.set((_runs, root))
    _in_thread.last = (_runs, root)
    _runs.ended(root)


def forget() -> None:
    """Begin anew: what was recorded under an earlier `instrument()` is no more spoken of."""
    global _runs  # noqa: PLW0603  # contexts of other tasks cannot be emptied, but outdated
    _runs = _Runs()


def last_run() -> SpanContext | None:
    """Return the root of the run that the caller is most likely to speak of, if there is one.

    In a coroutine that is the run that ended in the same task; elsewhere the one that ended in
    the same thread, be it inside an event loop that is closed by now. A run that ended elsewhere
    (frameworks run agents in tasks and threads of their own) counts only if no other ran beside it.
    """
    places: list[_Ended | None] = [_in_context.get()]
    if not _in_coroutine():
        places.insert(0, getattr(_in_thread, "last", None))
    here = next((root for runs, root in filter(None, places) if runs is _runs), None)
    return here or _runs.only()


def _in_coroutine() -> bool:
    asyncio = sys.modules.get("asyncio")
    if asyncio is None:  # then no loop runs either; its import is slow
        return False
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
