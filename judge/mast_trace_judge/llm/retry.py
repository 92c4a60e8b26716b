"""The only retry layer of the judge's calls, and their concurrency limit."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

from mast_trace.exceptions import EndpointUnavailable
from mast_trace.retry_after import doubled

T = TypeVar("T")
_LOG = logging.getLogger(__name__)


async def together(coroutines: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Return the results in order; the first exception cancels the others and is raised.

    `asyncio.gather` would let the others continue, here with paid calls whose results nobody
    awaits; `asyncio.TaskGroup` needs Python 3.11.
    """
    tasks = [asyncio.ensure_future(coroutine) for coroutine in coroutines]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class Transient(Exception):
    """A failure that may pass in a moment; never leaves this layer.

    Attributes:
        retry_after: seconds that the server asked to wait; None if it named none.
        overloaded: whether fewer calls at a time would help.
    """

    def __init__(
        self, reason: str, *, retry_after: float | None = None, overloaded: bool = False
    ) -> None:
        super().__init__(reason)
        self.retry_after = retry_after
        self.overloaded = overloaded


class AdaptiveLimit:
    """Calls at a time: a little more after each success, half after each sign of overload (AIMD).

    Attributes:
        most: the upper end.
        limit: number of calls that may run now; at least one.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.limit = float(most)
        self._in_flight = 0
        self._freed = asyncio.Event()
        self._closed_until = 0.0

    @contextlib.asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """Wait for a free slot, and for the end of a pause that the server asked for."""
        while self._in_flight >= int(self.limit):
            self._freed.clear()
            await self._freed.wait()
        self._in_flight += 1
        try:
            await self._pause_is_over()
            yield
        finally:
            self._in_flight -= 1
            self._freed.set()

    async def _pause_is_over(self) -> None:
        pause = self._closed_until - time.monotonic()
        if pause > 0:
            await asyncio.sleep(pause)
            await self._pause_is_over()  # another call may have extended it meanwhile

    def succeeded(self) -> None:
        """Record a successful call."""
        self.limit = min(float(self.most), self.limit + 1.0 / self.limit)
        self._freed.set()

    def overloaded(self, pause: float) -> None:
        """Record a sign of overload: no calls for ``pause`` seconds, then half as many at a time.

        Calls that were in flight together report the same overload; it counts once.
        """
        now = time.monotonic()
        if now >= self._closed_until:
            self.limit = max(1.0, self.limit / 2)
        self._closed_until = max(self._closed_until, now + pause)


@dataclass(frozen=True)
class Retry:
    """The policy of retries.

    Attributes:
        attempts: calls in all.
        first_pause: seconds before the second; it doubles from there, half of it by chance.
        longest_pause: seconds; a server that asks for more counts as down.
    """

    attempts: int = 5
    first_pause: float = 0.5
    longest_pause: float = 60.0

    async def call(self, send: Callable[[], Awaitable[T]], limit: AdaptiveLimit) -> tuple[T, int]:
        """Call until it works; return the result and the number of retries.

        Raises:
            EndpointUnavailable: every attempt failed, or the server asked for too long a wait.
        """
        for attempt in range(self.attempts):
            try:
                async with limit.slot():
                    result = await send()
            except Transient as failure:
                pause = self._pause(attempt, failure)
                if failure.overloaded:
                    limit.overloaded(min(pause, self.longest_pause))
                if attempt + 1 == self.attempts or pause > self.longest_pause:
                    raise EndpointUnavailable(
                        f"the model's endpoint failed {attempt + 1} times, last: {failure}"
                    ) from failure
                _LOG.info("judge call failed (%s); again in %.1f s", failure, pause)
                await asyncio.sleep(pause)
            else:
                limit.succeeded()
                return result, attempt
        raise EndpointUnavailable("no attempt was allowed")

    def _pause(self, attempt: int, failure: Transient) -> float:
        own = doubled(self.first_pause, attempt + 1, self.longest_pause)
        jittered = own * random.uniform(0.5, 1.0)  # noqa: S311
        if failure.retry_after is None:
            return jittered
        return failure.retry_after + jittered * 0.1
