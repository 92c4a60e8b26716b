"""Threads and executors that AutoGen starts, which would lose the context of their caller.

The modules that start them are given a view of `threading` and `asyncio` whose threads carry it;
nobody else's are touched.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from opentelemetry import context as otel_context

from mast_trace.spans import attached, guarded
from mast_trace_instrumentations.autogen.run import Chat

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

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
    """Another object, some of whose attributes are replaced."""

    def __init__(self, seen: Any) -> None:
        self._seen = seen

    def __getattr__(self, name: str) -> Any:
        return getattr(self._seen, name)


class Threading(_View):
    """`threading`, as a module sees it whose threads carry the context."""

    def Thread(self, *args: Any, target: Any = None, **kwargs: Any) -> Any:  # noqa: N802
        """Make a thread that runs in the context of its maker."""
        if target is not None:
            target = partial(_run, *_taken_over(), target)
        return self._seen.Thread(*args, target=target, **kwargs)


class Asyncio(_View):
    """`asyncio`, as a module sees it whose executors carry the context."""

    def get_event_loop(self) -> Any:
        """Return the loop, whose executors carry the context."""
        return _Loop(self._seen.get_event_loop())

    def get_running_loop(self) -> Any:
        """Return the loop, whose executors carry the context."""
        return _Loop(self._seen.get_running_loop())

    def create_task(self, coro: Any, **kwargs: Any) -> Any:
        """Make a task; it carries the context by itself, and ends what it owns."""
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
    """Give ``module`` the views, and return what it had."""
    views = {"threading": Threading, "asyncio": Asyncio}
    before = {name: vars(module)[name] for name in views if name in vars(module)}
    for name, original in before.items():
        setattr(module, name, views[name](original))
    return before
