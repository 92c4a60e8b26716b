"""One body for a call inside a span: of functions, coroutines, generators and async generators.

The context of a span is current while the called code runs, and only then: one that stayed attached
across a ``yield`` would leak into whoever consumes the generator, and could not be detached where
another thread or task consumes it. So it is attached anew for each step.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Coroutine
from functools import partial
from typing import TYPE_CHECKING, Any

from mast_trace.spans.calls import NO_RESULT, attached
from mast_trace.spans.guard import guarded

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Generator

    from mast_trace.spans.calls import Call

    Begin = Callable[[tuple[Any, ...], dict[str, Any]], "Call | None"]
    Shell = Callable[[Callable[..., Any], Begin, str], Callable[..., Any]]
    BeginMethod = Callable[[Any, tuple[Any, ...], dict[str, Any]], "Call | None"]


def traced(function: Callable[..., Any], begin: Begin, doing: str) -> Callable[..., Any]:
    """Return ``function`` with a traced call around each of its calls.

    Args:
        function: of any kind; what is returned is of the same kind, for frameworks look at it.
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
    is_stream = shell in {_generator, _asynchronous_generator}

    def handle(
        wrapped: Callable[..., Any], instance: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        def begun(_args: tuple[Any, ...], _kwargs: dict[str, Any]) -> Call | None:
            return begin(instance, args, kwargs)

        if is_stream:
            # Called at once: wrong arguments are to fail here, not at the first step.
            inner = wrapped(*args, **kwargs)
            return shell(lambda: inner, begun, doing)()
        return shell(wrapped, begun, doing)(*args, **kwargs)

    return handle


async def awaited(
    function: Callable[[], Awaitable[Any]], begin: Callable[[], Call | None], doing: str
) -> Any:
    """Await what ``function`` returns inside of a traced call, where there is nothing to patch.

    Args:
        function: of the framework.
        begin: makes the traced call, or None to trace nothing.
        doing: completes "mast-trace failed while ..." for the log.
    """
    return await _coroutine(function, lambda *_: begin(), doing)()


def _shell_of(function: Callable[..., Any]) -> Shell:
    inner = inspect.unwrap(function)
    if inspect.isasyncgenfunction(inner):
        return _asynchronous_generator
    if inspect.isgeneratorfunction(inner):
        return _generator
    return _coroutine if inspect.iscoroutinefunction(inner) else _plain


def _plain(function: Callable[..., Any], begin: Begin, doing: str) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        traced_call = _begun(begin, args, kwargs, doing)
        if traced_call is None:
            return function(*args, **kwargs)
        try:
            with attached(traced_call.context):
                result = function(*args, **kwargs)
        except BaseException as error:
            _ended(traced_call, NO_RESULT, error, doing)
            raise
        if isinstance(result, Coroutine):
            # A decorator or a compiler hid that this is a coroutine function.
            return _awaited(lambda: result, traced_call, doing)
        _ended(traced_call, result, None, doing)
        return result

    return call


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
        context = None if traced_call is None else traced_call.context
        step: Callable[[], Any] = partial(next, generator)
        result, failure = NO_RESULT, None
        try:
            while True:
                with attached(context):
                    item = step()
                try:
                    sent = yield item
                except GeneratorExit:
                    with attached(context):
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
            _ended(traced_call, result, failure, doing)

    return stream


def _asynchronous_generator(
    function: Callable[..., Any], begin: Begin, doing: str
) -> Callable[..., Any]:
    """As `_generator`; in a language without ``yield from`` for these, once more in full."""

    async def stream(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
        generator = function(*args, **kwargs)
        traced_call = _begun(begin, args, kwargs, doing)
        context = None if traced_call is None else traced_call.context
        step: Callable[[], Any] = generator.__anext__
        failure: BaseException | None = None
        try:
            while True:
                with attached(context):
                    item = await step()
                try:
                    sent = yield item
                except GeneratorExit:
                    with attached(context):
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
            _ended(traced_call, NO_RESULT, failure, doing)

    return stream


def _begun(begin: Begin, args: tuple[Any, ...], kwargs: dict[str, Any], doing: str) -> Call | None:
    with guarded(doing):
        return begin(args, kwargs)
    return None


def _ended(traced_call: Call | None, result: Any, error: BaseException | None, doing: str) -> None:
    if traced_call is not None:
        with guarded(doing):
            traced_call.end(result, error)
