"""Carries runs into the threads of pools, and into plain threads, which do not inherit the context.

Only the values of mast-trace are carried: the traces of other tools stay as they are.
"""

from __future__ import annotations

import contextvars
import logging
import sys
import threading
import weakref
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import wrapt
from opentelemetry import context as otel_context
from opentelemetry.context import Context

from mast_trace import semconv
from mast_trace.spans.calls import attached
from mast_trace.spans.guard import guarded
from mast_trace.spans.run_state import Run, current_run

logger = logging.getLogger("mast_trace")

_OURS: Final = "mast-trace"
_INHERITED: Final[bool] = getattr(sys.flags, "thread_inherit_context", False)
"""True where threads begin with the context of their starter: the default of Python 3.14 without a GIL."""
_started_in: weakref.WeakKeyDictionary[threading.Thread, weakref.ref[Run]] = (
    weakref.WeakKeyDictionary()
)
_on = False
_wrapped = False
_warned = False


def carry_runs() -> None:
    """Carry runs into threads from now on."""
    global _on, _wrapped  # noqa: PLW0603  # a process has one set of threads
    _on = True
    if not _wrapped:  # the wrappers stay: others may have wrapped them since
        _wrapped = True
        wrapt.wrap_function_wrapper(threading, "Thread.start", _start)
        wrapt.register_post_import_hook(_wrap_pools, "concurrent.futures.thread")


def carry_no_runs() -> None:
    """Leave threads alone from now on."""
    global _on  # noqa: PLW0603
    _on = False
    _started_in.clear()


def note_lost_call() -> None:
    """Mark the open run that has started this thread, which calls a model without belonging to the run."""
    global _warned  # noqa: PLW0603
    started_in = _started_in.get(threading.current_thread())
    run = started_in() if started_in else None
    if run is None or not run.root.is_recording():
        return
    run.root.set_attribute(semconv.CALLS_MISSING, value=True)
    if not _warned:
        _warned = True
        logger.warning(
            "mast-trace: a model was called in thread %s, which a run has started and which does not "
            "belong to it: the call is recorded outside of the run, whose calls may be missing. Hand "
            "the function over by mast_trace.in_context(function). This is logged once.",
            threading.current_thread().name,
        )


class _WhileOpen(Context):
    """The values of a run; nothing once the run is over, because the thread may go on for others."""

    def __init__(self, values: dict[str, Any], run: Run) -> None:
        super().__init__(values)
        self._root = run.root

    def get(self, key: str, default: Any = None) -> Any:
        """Return a value while the run is open."""
        self._leave()
        return super().get(key, default)

    def copy(self) -> dict[str, Any]:
        """Return the values of a further context."""
        self._leave()
        return super().copy()

    def _leave(self) -> None:
        if not self._root.is_recording():
            dict.clear(self)  # the thread shall not hold the run's texts


def _wrap_pools(_module: Any) -> None:
    wrapt.wrap_function_wrapper("concurrent.futures.thread", "ThreadPoolExecutor.submit", _submit)


def _submit(
    wrapped: Callable[..., Any], _instance: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    if _on and args and current_run() is not None:
        args = (partial(_inside, Context(_values()), args[0]), *args[1:])
    return wrapped(*args, **kwargs)


def _start(
    wrapped: Callable[..., Any],
    thread: threading.Thread,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    if _on and (run := current_run()) is not None:
        with guarded("carrying a run into a thread"):
            run = run.outermost or run
            _started_in[thread] = weakref.ref(run)
            target = getattr(thread, "_target", None)
            if target is not None and _is_for_the_run(thread, target):
                thread._target = partial(_inside, _WhileOpen(_values(), run), target)  # type: ignore[attr-defined]  # noqa: SLF001
            elif _INHERITED and thread._context is None:  # type: ignore[attr-defined]  # noqa: SLF001
                thread._context = contextvars.copy_context()  # type: ignore[attr-defined]  # noqa: SLF001
                thread._context.run(otel_context.attach, Context())  # type: ignore[attr-defined]  # noqa: SLF001
    return wrapped(*args, **kwargs)


def _is_for_the_run(thread: threading.Thread, target: Any) -> bool:
    """Return whether a thread does work of its starter: workers of pools, and services, work for anyone."""
    is_service = thread.daemon and not threading.current_thread().daemon
    is_worker = getattr(target, "__module__", "") == "concurrent.futures.thread"
    return type(thread) is threading.Thread and not is_service and not is_worker


def _values() -> dict[str, Any]:
    return {k: v for k, v in otel_context.get_current().items() if k.startswith(_OURS)}


def _inside(context: Context, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    with attached(context):
        return function(*args, **kwargs)
