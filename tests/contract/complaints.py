"""Surroundings of programs in which people have lost spans, contexts or their results with other tools.

Each runs the main program of a contract, once or more often, and returns its results.
"""

from __future__ import annotations

import asyncio
import contextvars
import copy
import threading
import warnings
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from recorded_spans import RecordedSpans

    Program = Callable[[str], Any]


async def streamed_by_tasks(program: Program, url: str, _recorded: RecordedSpans) -> list[Any]:
    """An asynchronous generator, such as the body of a response: each step may be another task's."""

    async def body() -> AsyncIterator[Any]:
        yield "one moment"
        yield await program(url)
        yield "done"

    pieces = body()

    async def step() -> Any:
        return await anext(pieces)

    _, result, _ = [await asyncio.create_task(step()) for _ in range(3)]
    await asyncio.create_task(pieces.aclose())
    return [result]


async def after_the_response(program: Program, url: str, _recorded: RecordedSpans) -> list[Any]:
    """A background task: whoever has started it is gone, and so is its context."""
    started: list[asyncio.Task[Any]] = []

    async def request() -> None:
        started.append(asyncio.create_task(program(url)))

    await asyncio.create_task(request())
    return [await started[0]]


def in_a_context_of_another_thread(
    program: Program, url: str, _recorded: RecordedSpans
) -> list[Any]:
    """A worker's thread, which runs in a copy of the context in which the work was ordered."""
    results: list[Any] = []
    context = contextvars.copy_context()

    def work() -> None:
        results.append(context.run(asyncio.run, program(url)))

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join()
    return results


async def loaded_again(program: Program, url: str, recorded: RecordedSpans) -> list[Any]:
    """A notebook's cell, or a module that is loaded anew: it switches recording on each time."""
    results = []
    for _ in range(2):
        again = type(recorded.instrumentor)()
        again.instrument(tracer_provider=recorded.provider)
        results.append(await program(url))
    again.uninstrument()
    return results


_PLAIN_RUNS = 8


async def with_all_warnings(program: Program, url: str, recorded: RecordedSpans) -> list[Any]:
    """No warning, such as pydantic's of a value that it does not expect, comes from recording."""

    async def told() -> tuple[set[tuple[type[Warning], str]], Any]:
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            warnings.simplefilter("ignore", ResourceWarning)  # whenever garbage is collected
            result = await program(url)
        return {(each.category, each.filename) for each in seen}, result

    ours, result = await told()
    recorded.instrumentor.uninstrument()
    without: set[tuple[type[Warning], str]] = set()
    # A library's own thread may warn when the program has ended already: one time of several it is in time.
    for _ in range(_PLAIN_RUNS):
        without |= (await told())[0]
        if ours <= without:
            break
    recorded.instrumentor.instrument(tracer_provider=recorded.provider)
    assert ours <= without
    return [copy.deepcopy(result)]


COMPLAINTS = (
    streamed_by_tasks,
    after_the_response,
    in_a_context_of_another_thread,
    loaded_again,
    with_all_warnings,
)
"""All of them."""
