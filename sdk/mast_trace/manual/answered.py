"""Functions under `mast_trace.tool`, which a replay answers in place of running them."""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


class Answering(Protocol):
    """A replay that is on."""

    def answered(self, name: str, arguments: Mapping[str, Any], function: Any) -> tuple[Any] | None:
        """Return the value of a call in a tuple, or None where the function is to run."""

    async def answered_async(
        self, name: str, arguments: Mapping[str, Any], function: Any
    ) -> tuple[Any] | None:
        """Return likewise the value of a call of a coroutine function."""

    def runs(self, name: str, arguments: Any) -> None:
        """Note that a call runs for real, because the code of its block cannot be answered."""


_replay: Answering | None = None


def answer_by(replay: Answering | None) -> None:
    """Have calls answered by ``replay`` from now on; None ends it."""
    global _replay  # noqa: PLW0603  # one for the process, as threads lose contexts
    _replay = replay


def note_block(name: str, arguments: Any) -> None:
    """Tell the replay, if one is on, that the code of a tool's block runs."""
    if _replay is not None:
        _replay.runs(name, arguments)


def answerable(
    function: Callable[..., Any],
    name: str,
    bind: Callable[[Any, tuple[Any, ...], dict[str, Any]], Mapping[str, Any]],
) -> Callable[..., Any]:
    """Return a function of the same kind that asks the replay, if one is on, before it runs.

    Generators are returned as they are: no recorded text tells how they came in pieces.

    Args:
        function: a tool's.
        name: the tool's.
        bind: returns the arguments of a call by name.
    """
    inner = inspect.unwrap(function)
    if inspect.isgeneratorfunction(inner) or inspect.isasyncgenfunction(inner):
        return function
    if inspect.iscoroutinefunction(inner):

        @functools.wraps(function)
        async def asynchronous(*args: Any, **kwargs: Any) -> Any:
            if _replay is not None:
                given = bind(function, args, kwargs)
                found = await _replay.answered_async(name, given, inner)
                if found is not None:
                    return found[0]
            return await function(*args, **kwargs)

        return asynchronous

    @functools.wraps(function)
    def plain(*args: Any, **kwargs: Any) -> Any:
        if _replay is not None:
            found = _replay.answered(name, bind(function, args, kwargs), inner)
            if found is not None:
                return found[0]
        return function(*args, **kwargs)

    return plain
