"""Threads and executors of AutoGen that would lose the context of their caller.

The modules that start them get a view of `threading` and `asyncio` whose threads carry the context;
other modules are unchanged.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import ModuleType
from typing import TYPE_CHECKING, Any

from opentelemetry import context as otel_context

from mast_trace.spans import attached, guarded
from mast_trace_instrumentations.autogen.run import Chat

if TYPE_CHECKING:
    from opentelemetry.context import Context

_OWNED = "mast-trace-autogen-owned"


def owned_by_what_it_starts(chat: Chat) -> Context:
    """Return a context in which the next thread or task ends ``chat`` when it ends."""
    return otel_context.set_value(_OWNED, chat, chat.context)


def _taken_over() -> tuple[Context, Chat | None]:
    context = otel_context.get_current()
    owned = otel_context.get_value(_OWNED, context)
    if not isinstance(owned, Chat):
        return context, None
    return otel_context.set_value(_OWNED, None, context), owned


def _run(
    context: Context,
    owned: Chat | None,
    target: Callable[..., Any],
    *args: Any,
    **kwargs: Any,
) -> Any:
    with attached(context):
        try:
            return target(*args, **kwargs)
        finally:
            if owned is not None:
                with guarded("ending a sequence of chats"):
                    owned.finish()


class _View:
    """A proxy of another object with some attributes replaced."""

    def __init__(self, seen: Any) -> None:
        self._seen = seen

    def __getattr__(self, name: str) -> Any:
        return getattr(self._seen, name)


class Threading(_View):
    """A view of `threading` whose threads carry the context."""

    def Thread(self, *args: Any, target: Any = None, **kwargs: Any) -> Any:  # noqa: N802
        """Return a thread that runs in the context of its creator."""
        if target is not None:
            target = partial(_run, *_taken_over(), target)
        return self._seen.Thread(*args, target=target, **kwargs)


class Asyncio(_View):
    """A view of `asyncio` whose executors carry the context."""

    def get_event_loop(self) -> Any:
        """Return the loop, whose executors carry the context."""
        return _Loop(self._seen.get_event_loop())

    def get_running_loop(self) -> Any:
        """Return the loop, whose executors carry the context."""
        return _Loop(self._seen.get_running_loop())

    def create_task(self, coro: Any, **kwargs: Any) -> Any:
        """Return a task; tasks carry the context anyway, and this one ends the chats that it owns."""
        context, owned = _taken_over()
        with attached(context):
            task = self._seen.create_task(coro, **kwargs)
        if owned is not None:
            task.add_done_callback(lambda _task: owned.finish())
        return task


class _Loop(_View):
    def run_in_executor(self, executor: Any, func: Any, *args: Any) -> Any:
        """Run in a thread of the executor, in the context of the caller."""
        call = partial(_run, otel_context.get_current(), None, func)
        return self._seen.run_in_executor(executor, call, *args)


def replace_in(module: ModuleType) -> dict[str, Any]:
    """Install the views in ``module``, and return the attributes that they replace."""
    views = {"threading": Threading, "asyncio": Asyncio}
    before = {name: vars(module)[name] for name in views if name in vars(module)}
    for name, original in before.items():
        setattr(module, name, views[name](original))
    return before
