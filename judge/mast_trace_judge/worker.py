"""`Worker`: judges runs as they finish, until it is stopped.

It keeps no durable state. A run is judged when its verdict is in the database, so a worker may be
killed at any point and another one continues; two workers that judge the same run store the same
row. Those of one database divide its runs (`Workers`). A run that has just ended has a provisional verdict at once.
It is shown until the run is quiet, and no alert, pattern or lesson comes of it. Where a model reads runs, the local
verdict is stored first; it says that a reading is to replace it, which is the queue of readings.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import TYPE_CHECKING

from mast_trace.exceptions import StorageError
from mast_trace.retry_after import doubled
from mast_trace_collector.storage.runs import RunSummary, finished_runs, unread_runs
from mast_trace_judge.batch import JudgedLocally, chunks_of, judge_chunk
from mast_trace_judge.config import WorkerConfig
from mast_trace_judge.patterns.naming import pattern_steps
from mast_trace_judge.side_jobs import IndexPace, SideJobs, to_the_end
from mast_trace_judge.store.confirmations import show_missing
from mast_trace_judge.store.facts import FactsIndexer
from mast_trace_judge.store.good_runs import GoodRuns
from mast_trace_judge.store.workers import BEAT, Workers
from mast_trace_judge.verdict_writer import Key, VerdictWriter, key_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mast_trace.trajectory import Trajectory
    from mast_trace_collector.storage.store import Store
    from mast_trace_judge.judge import Judge
    from mast_trace_judge.local.layers import LocalFindings
    from mast_trace_judge.side_jobs import Step
    from mast_trace_judge.verdict import Verdict
    from mast_trace_judge.verdict_writer import Judged

_SHOW_EVERY = 60.0
"""Seconds after which conclusions of replays are shown that nobody has shown yet."""
_LOG = logging.getLogger(__name__)
_GRACE = 5.0
_REST = 4.0
_TOGETHER = 0.05
"""Seconds in which other readings may end, too: the runs in their place are looked for once."""
_LOOK_AT_ALL = 300.0
_LATE = 900.0
_MOST_ENDED = 1000


@dataclass(frozen=True)
class WorkerStatus:
    """The progress of a worker, for health checks and metrics.

    Attributes:
        last_beat: `time.time` of the last sign of life; there is one at least with every scan for
            runs.
        judged: verdicts stored, unscored ones included.
        unscored: of these, runs that could not be judged.
        in_flight: runs that the model is reading.
        held_off: runs that wait for another attempt, as their reading or storing failed.
        problem: the reason why it is stuck, empty if it is not.
        beside: the reason why jobs beside the judging are behind, empty if none is.
    """

    last_beat: float = 0.0
    judged: int = 0
    unscored: int = 0
    in_flight: int = 0
    held_off: int = 0
    problem: str = ""
    beside: str = ""


class Worker:
    """Judges finished runs of a store."""

    def __init__(
        self,
        store: Store,
        judge: Judge,
        config: WorkerConfig | None = None,
        *,
        on_verdicts: Callable[[Sequence[Verdict]], None] | None = None,
    ) -> None:
        """Set up the worker; nothing runs yet.

        Args:
            store: for reading runs and writing verdicts.
            judge: its ledger should write to the same store.
            config: from the environment if not given.
            on_verdicts: called with verdicts that have been stored, on the worker's event loop, without provisional ones.
                Where a model reads a run, first comes the local one, whose method is ``reading``, then the one that
                replaces it.
        """
        self._store = store
        self._judge = judge
        self._config = config or WorkerConfig.load()
        self._beats = (0.0, "")
        self._good = GoodRuns(store)
        self._writer = VerdictWriter(store, judge, on_verdicts)
        steps: dict[str, Step] = {"ledger": self._write_ledger, "shown verdicts": self._show}
        of_one: dict[str, Step] = {"run facts": IndexPace(FactsIndexer(store).index).step}
        if self._config.worker_patterns:
            of_one |= pattern_steps(store, judge, self._config, lambda: self._writer.judged)
        self._beside = SideJobs(steps | {name: self._if_leading(of_one[name]) for name in of_one})
        self._in_flight: dict[Key, asyncio.Task[None]] = {}
        # Runs that have just ended, with the verdict that they get if nothing more comes.
        self._just_ended: dict[Key, Verdict | None] = {}
        self._workers = Workers(store, lambda: [key[1] for key in self._in_flight])
        self._away: StorageError | OSError | None = None
        self._look_next = 0.0
        self._look_at_all = 0.0
        self._some_unread = True
        self._show_next = 0.0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._wake: asyncio.Event | None = None
        self._stopping = threading.Event()
        self._stopped = threading.Event()

    @property
    def status(self) -> WorkerStatus:
        """The progress so far; may be read from any thread."""
        last_beat, problem = self._beats
        return WorkerStatus(
            last_beat=last_beat,
            judged=self._writer.judged,
            unscored=self._writer.unscored,
            in_flight=len(self._in_flight),
            held_off=len(self._writer.held_off),
            problem=problem,
            beside=self._beside.problem,
        )

    async def run(self) -> None:
        """Judge runs as they finish, until `stop`; the database may go down and come back meanwhile."""
        self._loop, self._wake = asyncio.get_running_loop(), asyncio.Event()
        config, failures = self._config, 0
        beats = asyncio.create_task(self._live())
        try:
            while not self._stopping.is_set():
                look = time.monotonic() >= self._look_next
                if look:
                    self._beside.start()
                else:
                    await asyncio.sleep(_TOGETHER)
                try:
                    judged = await self._cycle(look=look)
                except Exception as error:  # noqa: BLE001 - whatever it is, it may be over later
                    failures += 1
                    pause = doubled(
                        config.worker_poll_seconds, failures, config.worker_retry_max_seconds
                    )
                    self._stuck(error, pause)
                    await self._sleep(pause)
                    continue
                failures = 0
                if not judged:
                    await self._sleep(max(0.0, self._look_next - time.monotonic()))
        finally:
            beats.cancel()
            await asyncio.gather(beats, return_exceptions=True)
            await self._finish()
            self._stopped.set()

    def request_stop(self) -> None:
        """Ask the worker to end; returns at once, from any thread, any number of times."""
        self._stopping.set()
        self.wake()

    async def stop(self) -> None:
        """Ask the worker to end and wait for it; may be awaited in any thread's event loop."""
        self.request_stop()
        if self._loop is not None:
            await asyncio.to_thread(self._stopped.wait)

    def wake(self) -> None:
        """Let the worker scan for finished runs now; from any thread."""
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # the loop is closed: no worker is left to wake
                self._loop.call_soon_threadsafe(self._look_now)

    def _look_now(self) -> None:
        self._look_next = 0.0
        self._go_on()

    def _go_on(self) -> None:
        """End the present pause; runs are looked for when it is time, and those to be read now."""
        if self._wake is not None:
            self._wake.set()

    async def drain_once(self) -> int:
        """Judge the runs that are finished now, at most one batch; return how many verdicts came.

        Raises:
            StorageError: the database does not answer.
        """
        before = self._writer.judged
        self._away = None
        await self._cycle(all_at_once=True)
        if self._in_flight:
            await asyncio.gather(*self._in_flight.values())
        if self._away is not None and self._writer.judged == before:
            raise self._away
        await self._beside.once()
        # The next command is another worker, which would wait for this one.
        await asyncio.to_thread(self._workers.leave)
        return self._writer.judged - before

    async def _cycle(self, *, all_at_once: bool = False, look: bool = True) -> bool:
        """Take finished runs and those to be read, or with ``look`` false these alone; return whether there was one."""
        self._beat()
        taken = False
        if look:
            self._look_next = time.monotonic() + self._config.worker_poll_seconds
        await self._keep()
        if not (self._workers.takes or all_at_once):
            return False
        paused, ended = self._writer.held_off.look()
        if ended:
            self._look_at_all = time.monotonic()
        # Verdicts come first: no run waits for the reading of another one.
        for due in (self._due, self._unread) if look else (self._unread,):
            runs = await due(paused, all_at_once=all_at_once)
            for chunk in chunks_of([run for run in runs if run.is_quiet]):
                if self._stopping.is_set():
                    return taken
                taken = True
                await self._take_up(chunk, all_at_once=all_at_once, has_verdict=due == self._unread)
            for chunk in chunks_of([run for run in runs if not run.is_quiet]):
                await self._judge_provisionally(chunk)
        return taken

    async def _live(self) -> None:
        """Say that this worker lives, however long it is busy with some runs."""
        while True:
            await asyncio.sleep(BEAT)
            # Looking for runs meets the error, too, and says so.
            with contextlib.suppress(StorageError, OSError):
                await self._keep()

    async def _keep(self) -> None:
        if await asyncio.to_thread(self._workers.keep):
            # The runs of one that has gone are among all.
            self._look_at_all = 0.0

    def _if_leading(self, step: Step) -> Step:
        """Let one worker of several do for all what is not divided."""

        async def led() -> bool:
            return self._workers.leads and await step()

        return led

    async def _write_ledger(self) -> bool:
        await self._judge.ledger.flush()
        return False

    async def _show(self) -> bool:
        """Show conclusions of replays whose writers were killed before they could."""
        now = time.monotonic()
        if now >= self._show_next:
            self._show_next = now + _SHOW_EVERY
            await to_the_end(show_missing, self._store)
        return False

    async def _due(self, paused: set[Key], *, all_at_once: bool) -> list[RunSummary]:
        """Find finished runs that are neither being judged nor held off after a failure.

        While others wait, as after a start, or at the end of a pause, all runs are scanned; then only recent
        ones, and every few minutes all again.
        """
        now = time.monotonic()
        busy = paused | set(self._in_flight)
        room = self._config.worker_batch
        limit = room + len(busy)
        at_all = all_at_once or now >= self._look_at_all
        # Those of a worker that was killed are among them.
        self._some_unread |= at_all
        started = time.monotonic()
        runs = await asyncio.to_thread(
            finished_runs,
            self._store,
            judge_version=self._judge.version,
            quiet=self._config.run_quiet_seconds,
            idle=self._config.run_idle_seconds,
            workers=() if all_at_once else self._workers.living,
            limit=limit,
            lookback_days=self._config.worker_lookback_days,
            recent=None if at_all else self._config.run_idle_seconds + _LATE,
            just_ended=not all_at_once,
        )
        looked = time.monotonic()
        if at_all and len(runs) < limit:
            # From now on, only runs with recent spans can become due. The periodic full scan picks
            # up rows that became visible late.
            self._look_at_all = now + _LOOK_AT_ALL
        known = busy | set(self._just_ended)
        found = [run for run in runs if key_of(run) not in (busy if run.is_quiet else known)][:room]
        if any(run.is_quiet for run in found):
            self._look_next = 0.0
        elif self._look_next:  # nobody has woken the worker meanwhile
            # However many runs the database has to scan, it is idle most of the time.
            self._look_next = looked + max(
                self._config.worker_poll_seconds, _REST * (looked - started)
            )
        return found

    async def _unread(self, paused: set[Key], *, all_at_once: bool) -> list[RunSummary]:
        """Find runs that the model is to read, as many as it may begin now, the earliest judged first."""
        room = self._room(all_at_once=all_at_once)
        if not (self._judge.uses_model and self._some_unread and room):
            return []
        busy = paused | set(self._in_flight)
        limit = room + len(busy)
        runs = await asyncio.to_thread(
            unread_runs,
            self._store,
            judge_version=self._judge.version,
            workers=() if all_at_once else self._workers.living,
            limit=limit,
            lookback_days=self._config.worker_lookback_days,
        )
        self._some_unread = len(runs) == limit
        return [run for run in runs if key_of(run) not in busy][:room]

    def _room(self, *, all_at_once: bool) -> int:
        """Return how many more runs the model may read now."""
        if all_at_once:
            return self._config.worker_batch
        return max(0, self._config.worker_concurrency - len(self._in_flight))

    async def _take_up(
        self, runs: Sequence[RunSummary], *, all_at_once: bool, has_verdict: bool
    ) -> None:
        """Judge runs locally, store their verdicts, and let the model read as many as it may.

        Args:
            runs: a chunk of them.
            all_at_once: whether the model may read any number of them.
            has_verdict: whether the local verdicts of those that the model is to read are stored already.
        """
        now = datetime.now(timezone.utc)
        unchanged = [
            JudgedLocally(run, verdict.model_copy(update={"judged_at": now}))
            for run in runs
            if (verdict := self._just_ended.pop(key_of(run), None)) is not None
        ]
        known = {key_of(one.run) for one in unchanged}
        others = [run for run in runs if key_of(run) not in known]
        judged = unchanged + await self._judge_locally(others)
        self._beat()
        ready: list[Judged] = []
        for one in judged:
            if one.error is not None:
                ready.extend(self._writer.failed(one.run, one.error))
            elif one.verdict is not None and not (has_verdict and one.for_model):
                ready.append((one.run, one.verdict))
        stored = await self._save(ready)
        to_read = [
            one for one in judged if one.for_model and (has_verdict or key_of(one.run) in stored)
        ]
        for one in to_read:
            for other, reading in self._in_flight.items():
                if other[:2] == key_of(one.run)[:2]:
                    reading.cancel()  # it is about what the run contained before
        begun = to_read[: self._room(all_at_once=all_at_once)]
        mine = await asyncio.to_thread(self._workers.claim, [one.run.trace_id for one in begun])
        for one in to_read:
            if one.for_model and one in begun and one.run.trace_id in mine:
                task = asyncio.create_task(self._judge_further(*one.for_model))
                self._in_flight[key_of(one.run)] = task
            else:
                self._some_unread = True

    async def _judge_locally(
        self, runs: Sequence[RunSummary], *, closed: bool = False
    ) -> list[JudgedLocally]:
        given = self._store, self._judge, runs, self._good
        return await asyncio.to_thread(judge_chunk, *given, closed=closed)

    async def _judge_provisionally(self, runs: Sequence[RunSummary]) -> None:
        """Store local verdicts on runs that have just ended, each of which is judged once before it is quiet."""
        judged = await self._judge_locally(runs, closed=True)
        self._just_ended |= dict.fromkeys(map(key_of, runs))
        ready: list[Judged] = []
        for one in judged:
            if one.verdict is not None and one.verdict.status == "ok":
                if one.for_model is None:
                    self._just_ended[key_of(one.run)] = one.verdict
                shown = one.verdict.model_copy(update={"method": "provisional"})
                ready.append((one.run, shown))
        await self._save(ready)
        for key in list(self._just_ended)[:-_MOST_ENDED]:
            del self._just_ended[key]

    async def _judge_further(
        self, run: RunSummary, trajectory: Trajectory, local: LocalFindings
    ) -> None:
        """Let the model read a run; in any case it stays to be read or gets its verdict, and paid answers are kept."""
        try:
            verdict = await self._judge.judge_further(run, trajectory, local)
            await self._save([(run, verdict)])
        except (StorageError, OSError) as error:
            self._put_off([run], error)
        except Exception as error:  # noqa: BLE001 - one run must not end the worker
            await self._save(self._writer.failed(run, error))
        finally:
            del self._in_flight[key_of(run)]
            self._go_on()

    async def _save(self, judged: Sequence[Judged]) -> set[Key]:
        """Store verdicts; where the database has no room for any, their runs stay due, and others go on.

        Returns:
            The runs whose verdicts were stored.
        """
        try:
            stored = await self._writer.save(judged)
        except (StorageError, OSError) as error:
            self._put_off([run for run, _ in judged], error)
            return set()
        self._away = None if judged else self._away
        return stored

    def _put_off(self, runs: Sequence[RunSummary], error: StorageError | OSError) -> None:
        """Leave runs alone for a while that failed for the database's sake."""
        self._away = error
        longest = self._config.worker_retry_max_seconds
        self._stuck(
            error, max(self._writer.held_off.add(key_of(run), longest=longest) for run in runs)
        )

    async def _finish(self) -> None:
        """Give runs that the model reads a moment; then drop them, but never a verdict half stored."""
        await self._beside.stop()
        tasks = list(self._in_flight.values())
        if tasks:
            _, pending = await asyncio.wait(tasks, timeout=_GRACE)
            for task in pending:
                task.cancel()
            await asyncio.gather(*pending, return_exceptions=True)
        await self._writer.finish()
        with contextlib.suppress(StorageError, OSError):
            await self._judge.ledger.flush()
            await asyncio.to_thread(self._workers.leave)

    async def _sleep(self, seconds: float) -> None:
        """Wait, or until another thread wakes the worker."""
        if self._wake is None or self._stopping.is_set():
            return
        with contextlib.suppress(asyncio.TimeoutError, TimeoutError):
            await asyncio.wait_for(self._wake.wait(), seconds)
        self._wake.clear()

    def _beat(self, *, problem: str = "") -> None:
        self._beats = (time.time(), problem or str(self._away or ""))

    def _stuck(self, error: Exception, pause: float) -> None:
        """Say why no run is judged for a while."""
        of_database = isinstance(error, StorageError)
        problem = str(error) if of_database else repr(error)
        self._beat(problem=problem)
        _LOG.warning(
            "%s, next try in %.1f s: %s",
            "database unavailable" if of_database else "no run can be judged",
            pause,
            problem,
            extra={"action": "worker_waits_for_database"},
            exc_info=None if of_database else error,
        )
