"""Functions, coroutine functions and generators whose every call is a block of its own."""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Generator

    from mast_trace.manual.blocks import Scope

    Begin = Callable[[tuple[Any, ...], dict[str, Any]], Scope[Any]]


def decorated(function: Callable[..., Any], begin: Begin) -> Callable[..., Any]:
    """Return ``function`` with a span around each call.

    Args:
        function: of any kind; what is returned is of the same kind, for frameworks look at it.
        begin: makes the block for a call's arguments.
    """
    if inspect.isasyncgenfunction(function):
        wrapper = _asynchronous_generator(function, begin)
    elif inspect.isgeneratorfunction(function):
        wrapper = _generator(function, begin)
    elif inspect.iscoroutinefunction(function):
        wrapper = _coroutine(function, begin)
    else:
        wrapper = _plain(function, begin)
    return functools.wraps(function)(wrapper)


def _plain(function: Callable[..., Any], begin: Begin) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        with begin(args, kwargs) as block:
            value = function(*args, **kwargs)
            block.returned(value)
            return value

    return call


def _coroutine(function: Callable[..., Any], begin: Begin) -> Callable[..., Any]:
    async def call(*args: Any, **kwargs: Any) -> Any:
        with begin(args, kwargs) as block:
            value = await function(*args, **kwargs)
            block.returned(value)
            return value

    return call


def _generator(function: Callable[..., Any], begin: Begin) -> Callable[..., Any]:
    """The block is current while the generator runs, not while its consumer does."""

    def stream(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        generator = function(*args, **kwargs)
        step, argument = generator.send, None
        failure: BaseException | None = None
        block = begin(args, kwargs)
        block.open()
        try:
            while True:
                with block.current():
                    item = step(argument)
                try:
                    argument, step = (yield item), generator.send
                except GeneratorExit:
                    with block.current():
                        generator.close()
                    raise
                except BaseException as error:  # noqa: BLE001  # what the consumer throws in
                    argument, step = error, generator.throw
        except StopIteration as stop:
            block.returned(stop.value)
            return stop.value
        except BaseException as error:
            failure = error
            raise
        finally:
            block.close(failure)

    return stream


def _asynchronous_generator(function: Callable[..., Any], begin: Begin) -> Callable[..., Any]:
    """As `_generator`; in a language without ``yield from`` for these, once more in full."""

    async def stream(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
        generator = function(*args, **kwargs)
        step, argument = generator.asend, None
        failure: BaseException | None = None
        block = begin(args, kwargs)
        block.open()
        try:
            while True:
                with block.current():
                    item = await step(argument)
                try:
                    argument, step = (yield item), generator.asend
                except GeneratorExit:
                    with block.current():
                        await generator.aclose()
                    raise
                except BaseException as error:  # noqa: BLE001  # what the consumer throws in
                    argument, step = error, generator.athrow
        except StopAsyncIteration:
            return
        except BaseException as error:
            failure = error
            raise
        finally:
            block.close(failure)

    return stream
