"""One body for a call inside a span: of functions, coroutines, generators and async generators.

The context of a span is current while the called code runs, and only then: one that stayed attached
across a ``yield`` would leak into the consumer of the generator, and could not be detached where
another thread or task consumes it. Therefore the context is attached anew for each step.
"""

from __future__ import annotations

import atexit
import functools
import inspect
import itertools
import sys
import traceback
import weakref
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Generator
from functools import partial
from typing import TYPE_CHECKING, Any

from opentelemetry import context as otel_context

from mast_trace.spans.calls import NO_RESULT, Call, attached, restore
from mast_trace.spans.guard import guarded, swallowed
from mast_trace.spans.run_state import Run, current_run

if TYPE_CHECKING:
    Begin = Callable[[tuple[Any, ...], dict[str, Any]], "Call | None"]
    Shell = Callable[[Callable[..., Any], Begin, str], Callable[..., Any]]
    BeginMethod = Callable[[Any, tuple[Any, ...], dict[str, Any]], "Call | None"]


def traced(function: Callable[..., Any], begin: Begin, doing: str) -> Callable[..., Any]:
    """Return ``function`` with a traced call around each of its calls.

    Args:
        function: of any kind; the wrapper is of the same kind, because frameworks inspect it.
        begin: makes the traced call from the arguments, or None to trace nothing. It runs when the
            code of ``function`` begins to run: when a coroutine is awaited, at a generator's first
            step.
        doing: completes "mast-trace failed while ..." for the log.
    """
    return functools.wraps(function)(_shell_of(function)(function, begin, doing))


def handler(function: Callable[..., Any], begin: BeginMethod, doing: str) -> Callable[..., Any]:
    """Return the same as `traced` in the form that `wrapt.FunctionWrapper` calls.

    Args:
        function: decides on the kind of the call.
        begin: takes the instance, the positional and the keyword arguments.
        doing: completes "mast-trace failed while ..." for the log.
    """
    shell = _shell_of(function)
    if shell is _plain:
        return _plain_handler(begin, doing)
    is_stream = shell in {_generator, _asynchronous_generator}

    def handle(
        wrapped: Callable[..., Any], instance: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        def begun(_args: tuple[Any, ...], _kwargs: dict[str, Any]) -> Call | None:
            return begin(instance, args, kwargs)

        if is_stream:
            # Called at once: wrong arguments have to fail here, not at the first step.
            inner = wrapped(*args, **kwargs)
            return shell(lambda: inner, begun, doing)()
        return shell(wrapped, begun, doing)(*args, **kwargs)

    return handle


async def awaited(
    function: Callable[[], Awaitable[Any]], begin: Callable[[], Call | None], doing: str
) -> Any:
    """Await the result of ``function`` inside of a traced call, where there is nothing to patch.

    Args:
        function: of the framework.
        begin: makes the traced call, or None to trace nothing.
        doing: completes "mast-trace failed while ..." for the log.
    """
    traced_call = _begun(lambda *_: begin(), (), {}, doing)
    return await (function() if traced_call is None else _awaited(function, traced_call, doing))


def run_of(error: BaseException | None) -> Run | None:
    """Return the run that ended with an error, or with one that caused it; None if it left none.

    A limit, such as `asyncio.wait_for`, cancels a task of its own, whose context the caller never sees:
    the frames of the error are all that leads to the run.
    """
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        for frame, _ in traceback.walk_tb(error.__traceback__):
            if frame.f_code.co_filename == __file__:
                context = getattr(frame.f_locals.get("traced_call"), "context", None)
                if context is not None and (run := current_run(context)):
                    return run.outermost or run
        error = error.__cause__ or error.__context__
    return None


def _shell_of(function: Callable[..., Any]) -> Shell:
    inner = inspect.unwrap(function)
    if inspect.isasyncgenfunction(inner):
        return _asynchronous_generator
    if inspect.isgeneratorfunction(inner):
        return _generator
    return _coroutine if inspect.iscoroutinefunction(inner) else _plain


def _plain(function: Callable[..., Any], begin: Begin, doing: str) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        return _called(function, args, kwargs, _begun(begin, args, kwargs, doing), doing)

    return call


def _plain_handler(begin: BeginMethod, doing: str) -> Callable[..., Any]:
    """Return the handler of plain functions: the most common kind, without a closure for each call."""

    def handle(
        wrapped: Callable[..., Any], instance: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        try:
            traced_call = begin(instance, args, kwargs)
        except Exception as error:
            if not swallowed(doing, error):
                raise
            traced_call = None
        return _called(wrapped, args, kwargs, traced_call, doing)

    return handle


def _called(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    traced_call: Call | None,
    doing: str,
) -> Any:
    if traced_call is None:
        return function(*args, **kwargs)
    context = traced_call.context
    token = None if context is None else otel_context.attach(context)
    try:
        try:
            result = function(*args, **kwargs)
        finally:
            if token is not None:
                restore(token)
    except BaseException as error:
        _ended(traced_call, NO_RESULT, error, doing)
        raise
    if issubclass(type(result), Coroutine):
        # A decorator or a compiler hid that this is a coroutine function. `isinstance` would ask
        # the result for its `__class__`, which may be code of the program's.
        return _awaited(lambda: result, traced_call, doing)
    _ended(traced_call, result, None, doing)
    return result


def _coroutine(function: Callable[..., Any], begin: Begin, doing: str) -> Callable[..., Any]:
    async def call(*args: Any, **kwargs: Any) -> Any:
        traced_call = _begun(begin, args, kwargs, doing)
        if traced_call is None:
            return await function(*args, **kwargs)
        return await _awaited(partial(function, *args, **kwargs), traced_call, doing)

    return call


async def _awaited(function: Callable[[], Awaitable[Any]], traced_call: Call, doing: str) -> Any:
    try:
        with attached(traced_call.context):
            result = await function()
    except BaseException as error:
        _ended(traced_call, NO_RESULT, error, doing)
        raise
    _ended(traced_call, result, None, doing)
    return result


def _generator(function: Callable[..., Any], begin: Begin, doing: str) -> Callable[..., Any]:
    def stream(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        generator = function(*args, **kwargs)
        traced_call = _begun(begin, args, kwargs, doing)
        inside = attached(None if traced_call is None else traced_call.context)
        keep: Callable[[Any], None] | None = getattr(traced_call, "yielded", None)
        step: Callable[[], Any] = partial(next, generator)
        frame = _Frame(traced_call, doing)
        result, failure = NO_RESULT, None
        try:
            while True:
                with inside:
                    item = step()
                if keep is not None:
                    with guarded(doing):
                        keep(item)
                try:
                    sent = yield item
                except GeneratorExit:
                    with inside:
                        generator.close()
                    raise
                except BaseException as error:  # noqa: BLE001  # for the generator to handle
                    step = partial(generator.throw, error)
                else:
                    step = (
                        partial(next, generator) if sent is None else partial(generator.send, sent)
                    )
        except StopIteration as stop:
            result = stop.value
            return result
        except BaseException as error:
            failure = error
            raise
        finally:
            frame.left()
            _ended(traced_call, result, failure, doing)

    return stream


def _asynchronous_generator(
    function: Callable[..., Any], begin: Begin, doing: str
) -> Callable[..., Any]:
    """As `_generator`; asynchronous generators have no ``yield from``, so the loop is written out."""

    async def stream(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
        generator = function(*args, **kwargs)
        traced_call = _begun(begin, args, kwargs, doing)
        inside = attached(None if traced_call is None else traced_call.context)
        keep: Callable[[Any], None] | None = getattr(traced_call, "yielded", None)
        step: Callable[[], Any] = partial(_unregistered, generator)
        frame = _Frame(traced_call, doing)
        failure: BaseException | None = None
        try:
            while True:
                with inside:
                    item = await step()
                if keep is not None:
                    with guarded(doing):
                        keep(item)
                try:
                    sent = yield item
                except GeneratorExit:
                    with inside:
                        await generator.aclose()
                    raise
                except BaseException as error:  # noqa: BLE001  # for the generator to handle
                    step = partial(generator.athrow, error)
                else:
                    step = generator.__anext__ if sent is None else partial(generator.asend, sent)
        except StopAsyncIteration:
            return
        except BaseException as error:
            failure = error
            raise
        finally:
            frame.left()
            _ended(traced_call, NO_RESULT, failure, doing)

    return stream


def _unregistered(generator: AsyncGenerator[Any, Any]) -> Awaitable[Any]:
    """Begin the first step of a generator that its wrapper alone closes.

    An event loop that ends closes all generators that it knows at once: of a wrapper and the generator
    inside of it, one would find the other closing.
    """
    hooks = sys.get_asyncgen_hooks()
    sys.set_asyncgen_hooks(None, None)
    try:
        return generator.__anext__()
    finally:
        sys.set_asyncgen_hooks(*hooks)


class _Frame:
    """Stands for the frame of a generator: when it is collected, the traced call ends.

    An unclosed generator does not run its ``finally`` if the process ends first; nor does an
    asynchronous one if its event loop has been closed.
    """

    __slots__ = ("__weakref__", "_finalizer")

    def __init__(self, traced_call: Call | None, doing: str) -> None:
        if traced_call is None:
            self._finalizer = None
            return
        self._finalizer = weakref.finalize(
            self, _ended, traced_call, NO_RESULT, GeneratorExit(), doing
        )
        # Our exit handler runs before that of the exporter; this finaliser might not.
        self._finalizer.atexit = False
        _frames[next(_numbers)] = self

    def left(self) -> None:
        """Note that the generator is exhausted."""
        if self._finalizer is not None:
            self._finalizer.detach()

    def end(self) -> None:
        """End the traced call, unless it has ended."""
        if self._finalizer is not None:
            self._finalizer()


_frames: weakref.WeakValueDictionary[int, _Frame] = weakref.WeakValueDictionary()
_numbers = itertools.count()


def end_at_exit() -> None:
    """Register an exit handler that ends the calls of generators which are still open.

    Call it after the exporter was made: exit handlers run last in, first out.
    """
    atexit.unregister(_end_frames)
    atexit.register(_end_frames)


def _end_frames() -> None:
    for frame in reversed(list(_frames.values())):
        frame.end()


def _begun(begin: Begin, args: tuple[Any, ...], kwargs: dict[str, Any], doing: str) -> Call | None:
    try:
        return begin(args, kwargs)
    except Exception as error:
        if not swallowed(doing, error):
            raise
    return None


def _ended(traced_call: Call | None, result: Any, error: BaseException | None, doing: str) -> None:
    if traced_call is not None:
        try:
            traced_call.end(result, error)
        except Exception as failure:
            if not swallowed(doing, failure):
                raise
