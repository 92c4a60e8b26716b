"""`Worker`: judges runs as they finish, until it is stopped.

It keeps no durable state. A run is judged when its verdict is in the database, so a worker may be
killed at any point and another one continues; two workers that judge the same run store the same
row.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from mast_trace.exceptions import StorageError
from mast_trace_collector.storage.runs import finished_runs
from mast_trace_judge.batch import JudgedLocally, chunks_of, judge_chunk
from mast_trace_judge.config import WorkerConfig
from mast_trace_judge.patterns.keeping import PatternKeeper
from mast_trace_judge.patterns.naming import PatternNamer
from mast_trace_judge.patterns.naming_passes import NamingPasses
from mast_trace_judge.store import verdicts as verdict_store

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mast_trace_collector.storage.runs import RunSummary
    from mast_trace_collector.storage.store import Store
    from mast_trace_judge.judge import Judge
    from mast_trace_judge.verdict import Verdict

_LOG = logging.getLogger(__name__)
_GRACE = 5.0
_HELD_OFF = 5.0
_REST = 4.0
_FORGOTTEN = 3600.0
_LOOK_AT_ALL = 300.0
_LATE = 900.0
_MOST_LOGGED = 1000

Key = tuple[str, str, str]


@dataclass(frozen=True)
class WorkerStatus:
    """The progress of a worker, for health checks and metrics.

    Attributes:
        last_beat: `time.time` of the last sign of life; there is one at least with every scan for
            runs.
        judged: verdicts stored, unscored ones included.
        unscored: of these, runs that could not be judged.
        in_flight: runs that the model is reading.
        problem: the reason why it is stuck, empty if it is not.
    """

    last_beat: float = 0.0
    judged: int = 0
    unscored: int = 0
    in_flight: int = 0
    problem: str = ""


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
            on_verdicts: called with verdicts that have been stored, on the worker's event loop.
        """
        self._store = store
        self._judge = judge
        self._config = config or WorkerConfig.load()
        self._on_verdicts = on_verdicts
        self._status = WorkerStatus()
        # One worker of several does it for all: see `PatternIndexer`.
        keeps = self._config.worker_patterns and self._config.shard[0] == 0
        self._patterns = PatternKeeper(store) if keeps else None
        namer = PatternNamer(store, judge, self._config.worker_pattern_name_tokens)
        self._naming = NamingPasses(namer, self._config.worker_pattern_names) if keeps else None
        self._in_patterns = 0
        self._in_flight: dict[Key, asyncio.Task[None]] = {}
        self._saving: set[asyncio.Task[None]] = set()
        self._failures: dict[Key, tuple[int, float]] = {}
        self._looked_for = 0.0
        self._look_at_all = 0.0
        self._logged: set[str] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._wake: asyncio.Event | None = None
        self._stopping = threading.Event()
        self._stopped = threading.Event()

    @property
    def status(self) -> WorkerStatus:
        """The progress so far; may be read from any thread."""
        return replace(self._status, in_flight=len(self._in_flight))

    async def run(self) -> None:
        """Judge runs as they finish, until `stop`; the database may go down and come back meanwhile."""
        self._loop, self._wake = asyncio.get_running_loop(), asyncio.Event()
        pause = self._config.worker_poll_seconds
        try:
            while not self._stopping.is_set():
                try:
                    judged = await self._cycle()
                except StorageError as error:
                    self._beat(problem=str(error))
                    _LOG.warning(
                        "database unavailable, next try in %.1f s: %s",
                        pause,
                        error,
                        extra={"action": "worker_waits_for_database"},
                    )
                    await self._sleep(pause)
                    pause = min(pause * 2, self._config.worker_retry_max_seconds)
                    continue
                pause = self._config.worker_poll_seconds
                if not judged:
                    # However many runs the database has to scan, it is idle most of the time.
                    await self._sleep(max(pause, _REST * self._looked_for))
        finally:
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
        if self._loop is not None and self._wake is not None:
            with contextlib.suppress(RuntimeError):  # the loop is closed: no worker is left to wake
                self._loop.call_soon_threadsafe(self._wake.set)

    async def drain_once(self) -> int:
        """Judge the runs that are finished now, at most one batch; return how many verdicts came.

        Raises:
            StorageError: the database does not answer.
        """
        before = self._status.judged
        await self._cycle(wait=True)
        return self._status.judged - before

    async def _cycle(self, *, wait: bool = False) -> bool:
        """Take finished runs; return whether there was one."""
        self._beat()
        await self._judge.ledger.flush()
        taken = False
        for chunk in chunks_of(await self._due(all_at_once=wait)):
            taken = True
            await self._take_up(chunk)
            if self._stopping.is_set():
                break
        if wait and self._in_flight:
            await asyncio.gather(*self._in_flight.values())
        indexed = await self._keep_patterns()
        if self._naming is not None and not self._stopping.is_set():
            self._naming.start(indexed=indexed)
            if wait:
                await self._naming.finish()
        return indexed or taken

    async def _keep_patterns(self) -> bool:
        """Add newly judged runs to the patterns; return whether there was one."""
        if self._patterns is None or self._stopping.is_set():
            return False
        judged = self._status.judged
        new = judged != self._in_patterns
        self._in_patterns = judged
        return bool(await asyncio.to_thread(self._patterns.keep, judged=new))

    async def _due(self, *, all_at_once: bool) -> list[RunSummary]:
        """Find finished runs that are neither being judged nor held off after a failure.

        While others wait, as after a start, or have failed, all runs are scanned; then only recent
        ones, and every few minutes all again.
        """
        room = self._config.worker_batch
        if self._judge.uses_model and not all_at_once:
            room = self._config.worker_concurrency - len(self._in_flight)
            if room <= 0:
                return []
        now = time.monotonic()
        self._failures = {
            key: (attempts, until)
            for key, (attempts, until) in self._failures.items()
            if until > now - _FORGOTTEN
        }
        held_off = {key for key, (_, until) in self._failures.items() if until > now}
        busy = held_off | set(self._in_flight)
        limit = room + len(busy)
        at_all = all_at_once or bool(self._failures) or now >= self._look_at_all
        started = time.monotonic()
        runs = await asyncio.to_thread(
            finished_runs,
            self._store,
            judge_version=self._judge.version,
            quiet=self._config.run_quiet_seconds,
            idle=self._config.run_idle_seconds,
            shard=self._config.shard,
            limit=limit,
            lookback_days=self._config.worker_lookback_days,
            recent=None if at_all else self._config.run_idle_seconds + _LATE,
        )
        self._looked_for = time.monotonic() - started
        if at_all and len(runs) < limit:
            # From now on, only runs with recent spans can become due. The periodic full scan picks
            # up rows that became visible late.
            self._look_at_all = now + _LOOK_AT_ALL
        return [run for run in runs if _key(run) not in busy][:room]

    async def _take_up(self, runs: Sequence[RunSummary]) -> None:
        judged = await asyncio.to_thread(judge_chunk, self._store, self._judge, runs)
        self._beat()
        ready: list[Verdict] = []
        for one in judged:
            if one.error is not None:
                ready.extend(self._failed(one, one.error))
            elif one.verdict is not None:
                ready.append(one.verdict)
            else:
                key = _key(one.run)
                self._in_flight[key] = asyncio.create_task(self._judge_further(one))
        await self._save(ready)

    async def _judge_further(self, one: JudgedLocally) -> None:
        """Let the model read a run; in any case the run stays due or gets its verdict."""
        key = _key(one.run)
        try:
            await self._save([await self._judge.judge_further(*one.for_model)])
        except StorageError as error:
            # The run is due as before, and paid answers are in the ledger.
            self._hold_off(key, self._failures.get(key, (0, 0.0))[0])
            self._beat(problem=str(error))
        finally:
            del self._in_flight[key]
            self.wake()

    def _failed(self, one: JudgedLocally, error: Exception) -> Sequence[Verdict]:
        """Count a failure: retry the run later, or leave it unscored with the reason."""
        key = _key(one.run)
        description = repr(error)
        _LOG.error(
            "run %s cannot be judged: %s",
            one.run.trace_id,
            description,
            extra={"action": "run_not_judged"},
            # One traceback shows the place; a thousand runs may fail there.
            exc_info=None if description in self._logged else error,
        )
        if len(self._logged) < _MOST_LOGGED:
            self._logged.add(description)
        attempts = self._failures.get(key, (0, 0.0))[0] + 1
        if one.transient and attempts < self._config.worker_attempts:
            self._hold_off(key, attempts)
            return ()
        self._failures.pop(key, None)
        return (self._judge.unscored(one.run, error),)

    def _hold_off(self, key: Key, attempts: int) -> None:
        pause = min(_HELD_OFF * 2.0**attempts, self._config.worker_retry_max_seconds)
        self._failures[key] = (attempts, time.monotonic() + pause)

    async def _save(self, verdicts: Sequence[Verdict]) -> None:
        """Store verdicts, to the end even if the caller is cancelled meanwhile."""
        if not verdicts:
            return
        task = asyncio.create_task(self._store_verdicts(verdicts))
        self._saving.add(task)
        task.add_done_callback(self._saving.discard)
        await asyncio.shield(task)

    async def _store_verdicts(self, verdicts: Sequence[Verdict]) -> None:
        stored = await asyncio.to_thread(verdict_store.save, self._store, verdicts)
        unscored_ones = sum(verdict.status == "unscored" for verdict in stored)
        self._status = replace(
            self._status,
            judged=self._status.judged + len(stored),
            unscored=self._status.unscored + unscored_ones,
        )
        for verdict in verdicts:
            self._failures.pop((verdict.project, verdict.trace_id, verdict.fingerprint), None)
        if self._on_verdicts is not None:
            self._on_verdicts(stored)

    async def _finish(self) -> None:
        """Give runs that the model reads a moment; then drop them, but never a verdict half stored."""
        if self._naming is not None:
            await self._naming.stop()
        tasks = list(self._in_flight.values())
        if tasks:
            _, pending = await asyncio.wait(tasks, timeout=_GRACE)
            for task in pending:
                task.cancel()
            await asyncio.gather(*pending, return_exceptions=True)
        if self._saving:
            await asyncio.gather(*self._saving, return_exceptions=True)
        with contextlib.suppress(StorageError):
            await self._judge.ledger.flush()

    async def _sleep(self, seconds: float) -> None:
        """Wait, or until another thread wakes the worker."""
        if self._wake is None or self._stopping.is_set():
            return
        with contextlib.suppress(asyncio.TimeoutError, TimeoutError):
            await asyncio.wait_for(self._wake.wait(), seconds)
        self._wake.clear()

    def _beat(self, *, problem: str = "") -> None:
        self._status = replace(self._status, last_beat=time.time(), problem=problem)


def _key(run: RunSummary) -> Key:
    return (run.project, run.trace_id, run.fingerprint)
