"""Traced calls: the context in which a called function runs, and the function that records its end."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextvars import Token
from typing import TYPE_CHECKING, Any, Final, Protocol, final

from opentelemetry import context as otel_context

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from typing_extensions import Self

    from mast_trace.spans.open_spans import OpenSpan

NO_RESULT: Final = object()
"""Stands for the result of a call that failed, was left early, or is an asynchronous generator."""


class Call(Protocol):
    """One traced call of a function."""

    @property
    def context(self) -> Context | None:
        """The context in which the called code runs; None leaves the current one."""

    def end(self, result: Any, error: BaseException | None) -> None:
        """Record the end of the call; called once.

        Args:
            result: the result of the call, or `NO_RESULT`.
            error: its exception; `GeneratorExit` where the consumer of a generator stopped early.
        """


class Stream(Call, Protocol):
    """One traced call of a generator whose items are recorded."""

    def yielded(self, item: Any) -> None:
        """Receive the next item, before the consumer gets it."""


@final
class Inside:
    """A call made of a context and of a function that records its end.

    Args:
        context: current while the called code runs; None leaves the current one.
        end: takes the result and the error, as `Call.end`.
    """

    __slots__ = ("_end", "context")

    def __init__(
        self,
        context: Context | None = None,
        end: Callable[[Any, BaseException | None], object] | None = None,
    ) -> None:
        self.context = context
        self._end = end

    def end(self, result: Any, error: BaseException | None) -> None:
        """Record the end of the call."""
        if self._end is not None:
            self._end(result, error)


def in_span(span: OpenSpan, done: Callable[[Any], object] | None = None) -> Inside:
    """Return the call that ``span`` stands for.

    Args:
        span: current while the called code runs; it ends with the error of the call, or after
            ``done``. A consumer that leaves a generator early is no error.
        done: records the result, where there is one.
    """

    def end(result: Any, error: BaseException | None) -> None:
        try:
            if done is not None and result is not NO_RESULT:
                done(result)
        finally:
            span.end(None if isinstance(error, GeneratorExit) else error)

    return Inside(span.context, end)


@final
class attached:  # noqa: N801  # it reads as the participle that it is: with attached(context)
    """Makes a context current for a piece of code in the same frame; None changes nothing.

    It can be entered again after it has been left, as for each step of a generator.
    """

    __slots__ = ("_context", "_token")

    def __init__(self, context: Context | None) -> None:
        self._context = context

    def __enter__(self) -> None:
        context = self._context
        self._token = None if context is None else otel_context.attach(context)

    def __exit__(self, *_: object) -> None:
        if self._token is not None:
            restore(self._token)


class EitherWith(ABC):
    """A context manager that does the same by ``with`` and by ``async with``."""

    @abstractmethod
    def __enter__(self) -> Self: ...

    @abstractmethod
    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None: ...

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        self.__exit__(kind, error, traceback)


def restore(token: Token[Any]) -> None:
    """Make current again what ``token`` replaced, such as a context.

    A generator or coroutine that is closed in another context leaves its token there, with nothing
    to restore; `opentelemetry.context.detach` would log that as an error.
    """
    try:
        token.var.reset(token)
    except ValueError:
        pass
    except AttributeError:  # an implementation of contexts other than Python's own
        otel_context.detach(token)
