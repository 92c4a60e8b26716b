"""Carries runs into other threads where a program says so: they do not inherit the context of the thread that began them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from opentelemetry import context as otel_context
from opentelemetry import trace

from mast_trace.spans.calls import Inside
from mast_trace.spans.guard import misused
from mast_trace.spans.run_state import current_run, runs_elsewhere
from mast_trace.spans.within import traced

F = TypeVar("F", bound="Callable[..., Any]")


def in_context(function: F) -> F:
    """Return ``function`` such that its calls belong to the run in which `in_context` is called.

    For functions that another thread will call, where the run is not carried into it: other pools than
    `ThreadPoolExecutor`, daemon threads, sub-classes of `threading.Thread`. Coroutine functions and
    generators work as well; all of its calls may run at the same time.

    Args:
        function: to be called elsewhere; its arguments, result and errors stay as they are.
    """
    if not callable(function):
        misused("in_context", f"{type(function).__name__} cannot be called; it is returned")
        return function
    inside = Inside(otel_context.get_current())
    try:
        return cast("F", traced(function, lambda *_: inside, "entering a context"))
    except Exception:  # noqa: BLE001  # a callable that cannot be asked what it is
        misused("in_context", f"{type(function).__name__} cannot be wrapped; it is returned")
        return function


def warn_of_lost_run(call: str) -> None:
    """Warn once that a span begins a run of its own while another run is open in another thread."""
    if current_run() is None and runs_elsewhere() and not _has_parent():
        misused(
            call,
            "no run is current in this thread, while one is open in another thread: spans recorded "
            "here begin a run of their own. Hand the function over to the thread by "
            "mast_trace.in_context(function)",
        )


def _has_parent() -> bool:
    return trace.get_current_span().get_span_context().is_valid
