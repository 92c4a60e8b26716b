"""Finds the run that a late record_outcome() call refers to.

A program usually learns whether a run was good after the framework's call has returned, when the
run's span has ended and is no longer current. Only its span context is kept.
"""

from __future__ import annotations

import os
import sys
import threading
from contextvars import ContextVar
from typing import TYPE_CHECKING

from mast_trace.fork_safe import lock

if TYPE_CHECKING:
    from opentelemetry.trace import SpanContext


class _Runs:
    """Counts the runs of a period during which at least one run was always open."""

    def __init__(self) -> None:
        self._lock = lock()
        self._open: dict[int, int] = {}  # the thread in which each run began, by the id of its root
        self._runs = 0
        self._last: SpanContext | None = None

    def began(self, root: SpanContext) -> None:
        with self._lock:
            if not self._open:
                self._runs = 0
            self._open[root.span_id] = threading.get_ident()
            self._runs += 1

    def ended(self, root: SpanContext) -> None:
        with self._lock:
            self._open.pop(root.span_id, None)
            self._last = root

    def elsewhere(self) -> bool:
        """Return whether a run is open that began in another thread, and none that began in this one."""
        with self._lock:
            return bool(self._open) and threading.get_ident() not in self._open.values()

    def left_behind(self) -> None:
        """Forget the open runs of other threads, in a forked child, which has none of these threads."""
        here = threading.get_ident()
        self._open = {run: thread for run, thread in self._open.items() if thread == here}

    def only(self) -> SpanContext | None:
        """Return the run that ended last, if no other ran at the same time."""
        with self._lock:
            return self._last if not self._open and self._runs == 1 else None


_runs = _Runs()
_Ended = tuple[_Runs, "SpanContext"]
_in_context: ContextVar[_Ended | None] = ContextVar("mast_trace_ended_run", default=None)
_in_thread = threading.local()


def run_began(root: SpanContext) -> None:
    """Note that a run which is no part of another begins in this thread."""
    _runs.began(root)


def runs_elsewhere() -> bool:
    """Return whether runs are open and all of them began in other threads than this one."""
    return _runs.elsewhere()


def run_ended(root: SpanContext) -> None:
    """Note that a run ended in this context and thread."""
    _in_context.set((_runs, root))
    _in_thread.last = (_runs, root)
    _runs.ended(root)


def forget() -> None:
    """Forget ended runs of an earlier instrument() session."""
    global _runs  # noqa: PLW0603  # contexts of other tasks cannot be emptied, but outdated
    _runs = _Runs()


def last_run() -> SpanContext | None:
    """Return the root of the run that the caller most likely refers to, if there is one.

    In a coroutine this is the run that ended in the same task; elsewhere the run that ended in the
    same thread, even inside an event loop that is closed by now. A run that ended in another task
    or thread (frameworks run agents in their own) counts only if no other ran at the same time.
    """
    places: list[_Ended | None] = [_in_context.get()]
    if not _in_coroutine():
        places.insert(0, getattr(_in_thread, "last", None))
    here = next((root for runs, root in filter(None, places) if runs is _runs), None)
    return here or _runs.only()


def _in_coroutine() -> bool:
    asyncio = sys.modules.get("asyncio")
    if asyncio is None:  # then no event loop runs either, and importing asyncio is slow
        return False
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _left_behind() -> None:
    _runs.left_behind()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_left_behind)
