"""Running what is wrapped with a context that is current only inside of it.

A context that stayed attached across a ``yield`` would leak into whoever consumes the generator, and
could not be detached where another thread or task consumes it. So it is attached for each step.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, final

from opentelemetry.context import attach, detach

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Generator

    from opentelemetry.context import Context


@final
class Inside:
    """Makes a context current for one call in the same frame, and says how the call ended.

    Attributes:
        result: set it to what the call returned.
    """

    __slots__ = ("_context", "_end", "_token", "result")

    def __init__(self, context: Context, end: Callable[[Any, BaseException | None], None]) -> None:
        self._context = context
        self._end = end
        self.result: Any = None

    def __enter__(self) -> Inside:
        self._token = attach(self._context)
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        detach(self._token)
        self._end(self.result, error)


class Streamed(Protocol):
    """What is traced while a generator runs.

    Attributes:
        context: made current for each step of the generator.
    """

    context: Context

    def end(self, error: BaseException | None) -> None:
        """Called once: without an error when the generator is exhausted.

        `GeneratorExit` says that the consumer stopped early.
        """


def drive(
    inner: Generator[Any, Any, Any], begin: Callable[[], Streamed]
) -> Generator[Any, Any, Any]:
    """Yield what ``inner`` yields, with the context of what is traced current inside of it.

    Args:
        inner: the generator of the framework.
        begin: called at the first step, when the generator itself begins.
    """
    traced = begin()
    step: Callable[[], Any] = partial(next, inner)
    try:
        while True:
            token = attach(traced.context)
            try:
                chunk = step()
            except StopIteration as stop:
                result = stop.value
                break
            finally:
                detach(token)
            try:
                sent = yield chunk
            except GeneratorExit:
                _inside(traced.context, inner.close)
                raise
            except BaseException as thrown:  # noqa: BLE001  # for the generator to handle
                step = partial(inner.throw, thrown)
            else:
                step = partial(next, inner) if sent is None else partial(inner.send, sent)
    except BaseException as error:
        traced.end(error)
        raise
    traced.end(None)
    return result


async def adrive(
    inner: AsyncGenerator[Any, Any], begin: Callable[[], Streamed]
) -> AsyncGenerator[Any, Any]:
    """Do what `drive` does for an asynchronous generator."""
    traced = begin()
    step: Callable[[], Awaitable[Any]] = inner.__anext__
    try:
        while True:
            token = attach(traced.context)
            try:
                chunk = await step()
            except StopAsyncIteration:
                break
            finally:
                detach(token)
            try:
                sent = yield chunk
            except GeneratorExit:
                await _ainside(traced.context, inner.aclose)
                raise
            except BaseException as thrown:  # noqa: BLE001  # for the generator to handle
                step = partial(inner.athrow, thrown)
            else:
                step = inner.__anext__ if sent is None else partial(inner.asend, sent)
    except BaseException as error:
        traced.end(error)
        raise
    traced.end(None)


def _inside(context: Context, call: Callable[[], Any]) -> None:
    token = attach(context)
    try:
        call()
    finally:
        detach(token)


async def _ainside(context: Context, call: Callable[[], Awaitable[Any]]) -> None:
    token = attach(context)
    try:
        await call()
    finally:
        detach(token)
