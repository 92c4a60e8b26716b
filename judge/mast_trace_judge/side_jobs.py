"""Jobs of a worker beside the judging of runs, which none of them holds up or ends."""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar

from mast_trace.exceptions import StorageError
from mast_trace.retry_after import doubled
from mast_trace_collector.storage.removal.tombstones import AT_ONCE

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    Step = Callable[[], Awaitable[bool]]
    """Does a part of a job that is due, and returns whether there is more to do at once."""

T = TypeVar("T")
_LOG = logging.getLogger(__name__)
_FIRST_PAUSE: Final = 10.0
_LONGEST_PAUSE: Final = 600.0
_REST: Final = 20.0
"""Times the seconds that a step took until it failed: however long that is, the database is idle most of the time."""
_OF_OTHERS: Final = 10.0
"""Seconds after which runs are looked for that other workers have judged."""
_AT_ALL: Final = 300.0
"""Seconds after which runs of any time are: imported and late ones."""


@dataclass
class _Job:
    name: str
    step: Step
    task: asyncio.Task[None] | None = None
    failures: int = 0
    paused_until: float = 0.0
    problem: str = ""


class SideJobs:
    """Jobs in tasks of their own, each with its own pace, pauses and problem.

    After a failure a job pauses, each time longer; the others and the judging go on.

    Args:
        steps: of each job by its name, which logs and `problem` show. Those before come first in `once`.
        clock: returns monotonic seconds.
    """

    def __init__(
        self, steps: Mapping[str, Step], *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._jobs = [_Job(name, step) for name, step in steps.items()]
        self._clock = clock
        self._stopping = False

    @property
    def problem(self) -> str:
        """The reasons why jobs are behind; empty if none is."""
        return "; ".join(f"{job.name}: {job.problem}" for job in self._jobs if job.problem)

    def start(self) -> None:
        """Let each job that is neither running nor paused look whether it is due."""
        for job in self._jobs:
            running = job.task is not None and not job.task.done()
            if not running and not self._stopping and self._clock() >= job.paused_until:
                job.task = asyncio.create_task(self._run(job))

    async def once(self) -> None:
        """Let one job after the other look whether it is due, paused or not, and wait for all of them."""
        await self.idle()
        for job in self._jobs:
            if not self._stopping:
                await self._run(job)

    async def idle(self) -> None:
        """Wait until no job is running."""
        tasks = [job.task for job in self._jobs if job.task is not None]
        await asyncio.gather(*tasks, return_exceptions=True)

    async def stop(self) -> None:
        """Break off the jobs, and wait until each has ended what it was storing (`to_the_end`)."""
        self._stopping = True
        for job in self._jobs:
            if job.task is not None:
                job.task.cancel()
        await self.idle()

    async def _run(self, job: _Job) -> None:
        began = self._clock()
        try:
            while await job.step() and not self._stopping:
                began = self._clock()
        except Exception as error:  # noqa: BLE001 - no job may end the judging of runs
            self._failed(job, error, self._clock() - began)
        else:
            job.failures, job.problem = 0, ""

    def _failed(self, job: _Job, error: Exception, took: float) -> None:
        job.failures += 1
        pause = doubled(_FIRST_PAUSE, job.failures, _LONGEST_PAUSE)
        pause = max(pause, min(_REST * took, _LONGEST_PAUSE))
        job.paused_until = self._clock() + pause
        job.problem = str(error) if isinstance(error, StorageError) else repr(error)
        _LOG.warning(
            "the job `%s` beside the judging has failed, next try in %.0f s: %s",
            job.name,
            pause,
            job.problem,
            extra={"action": "side_job_failed"},
            exc_info=None if isinstance(error, StorageError) else error,
        )


async def to_the_end(function: Callable[..., T], *args: Any, **more: Any) -> T:
    """Call a function in a thread, and wait for its end even where the caller is cancelled meanwhile."""
    task = asyncio.create_task(asyncio.to_thread(function, *args, **more))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        raise


class IndexPace:
    """Lets an indexer write rows of runs now and then, and sometimes all that are missing.

    Args:
        index: writes rows of some runs, with ``at_all`` also of old ones, and returns how many.
        clock: returns monotonic seconds.
    """

    def __init__(
        self, index: Callable[..., int], *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._index = index
        self._clock = clock
        self._next = 0.0
        self._next_at_all = 0.0

    def keep(self, *, judged: bool = False) -> int:
        """Write the rows of some runs if it is time; return how many.

        Args:
            judged: whether verdicts were stored since the last call.

        Raises:
            StorageError: the database does not answer.
        """
        now = self._clock()
        if now < self._next and not judged:
            return 0
        at_all = now >= self._next_at_all
        written = self._index(at_all=at_all)
        if written < AT_ONCE:
            self._next = now + _OF_OTHERS
            if at_all:
                self._next_at_all = now + _AT_ALL
        return written

    async def step(self) -> bool:
        """Do so as a step of `SideJobs`."""
        return bool(await to_the_end(self.keep))
