"""Runs the replays that an experiment asks for, and stores each result before the next.

A kill loses at most the replays that are running. Their live calls were reserved before they started and
count as made. A later process tells the experiment the stored results first, and goes on after them.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from threading import Event
from typing import TYPE_CHECKING, Final, Generic, Protocol, TypeVar

from mast_trace.exceptions import BudgetExhausted, MastTraceError, SchemaMismatch, StorageError
from mast_trace_judge.arms import RECOVERY, ArmResult
from mast_trace_judge.store.replay_plans import ReplayPlan, stored_plan
from mast_trace_judge.store.replays import (
    Reservation,
    is_on_another_machine,
    is_running_elsewhere,
    record_result,
    reservations_of,
    reserve,
    result_at,
    results_of,
)
from mast_trace_lab.program.budget import (
    Account,
    Budget,
    CallCost,
    DailyBudget,
    Exhausted,
    ReplayAllowance,
    ReplayTrial,
    ResultMismatch,
    recorded_models,
)
from mast_trace_lab.program.process import kill_all

if TYPE_CHECKING:
    from pathlib import Path

    from mast_trace.trajectory import Trajectory
    from mast_trace_collector.storage import Store
    from mast_trace_lab.program.setup import Setup


def not_isolated(recorded: Trajectory, result: ArmResult, setup: Setup) -> str:
    """Return the reason why a replay cannot be compared with the others; empty if there is none.

    Tools of a replay are executed only where the person allows it. An executed tool may have changed
    the world, so that without a reset the next replay begins in another state. A provider may answer with
    another model than on the day of the recording, which changes the success rates of all arms.
    """
    changes_nothing = setup.plain and not setup.live_tools
    if result.live_tools and not (setup.reset or changes_nothing):
        tools = "1 tool was" if result.live_tools == 1 else f"{result.live_tools} tools were"
        return (
            f"{tools} executed, and nothing restored the state afterwards; "
            "--set reset=COMMAND names a command that does"
        )
    known = recorded_models(recorded)
    asked = result.arm.fix.model if result.arm.fix else ""
    other = [model for model in result.models if model not in known and not _is(model, asked)]
    if known and other:
        return (
            f"the run was made with {', '.join(sorted(known))}, and {', '.join(other)} answered now"
        )
    return ""


def _is(model: str, asked: str) -> bool:
    """Return whether a model is the one that was asked for: providers append dates to names."""
    return bool(asked) and model.startswith(asked)


@contextmanager
def locked_run(folder: Path, project: str, trace_id: str) -> Iterator[bool]:
    """Lock a run for the block; yield False if another process has locked it.

    The kernel removes the lock of a process that is killed. Programs that are started meanwhile do not
    inherit it.

    Args:
        folder: of the locks; made if it is missing.
        project: of the run.
        trace_id: of the run.
    """
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    # An id from the store is no file name.
    name = hashlib.sha256(f"{project}\0{trace_id}".encode()).hexdigest()[:32]
    path = folder / f"{name}.lock"
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
    finally:
        os.close(descriptor)


_T = TypeVar("_T")
Execute = Callable[["ReplayTrial", ReplayAllowance], ArmResult]
"""Runs one replay within its allowance."""

INTERRUPTED: Final = "The process that ran it ended before it did."
_PAUSES: Final = (0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0)
"""Seconds between attempts while the database does not answer."""


_MARGIN: Final = 60.0
"""Seconds beyond the limits of a replay within which a process on another machine may store its result."""


class CannotContinue(MastTraceError):
    """The stored results do not belong to the experiment, or another process runs it."""


@dataclass(frozen=True)
class Progress:
    """The state of a confirmation between two replays.

    Attributes:
        phase: of the next replay; empty at the end.
        step: index of its step; -1 for the whole program.
        replays: results so far.
        live_calls: of them.
        cost_usd: of them; of unpriced ones the most that was assumed.
    """

    phase: str
    step: int
    replays: int
    live_calls: int
    cost_usd: float


class Asking(Protocol):
    """An ask/tell experiment without input or output."""

    def waiting(self) -> Sequence[ReplayTrial]:
        """Return the replays that come next and may run together; nothing at the end."""

    def tell(self, result: ArmResult) -> None:
        """Take the result of the replay that comes next.

        Raises:
            ResultMismatch: the result is of another replay.
        """


_Asking = TypeVar("_Asking", bound=Asking)


class Conducting(Generic[_Asking]):
    """Runs the replays of one experiment on one run.

    Args:
        store: the database.
        plan: the stored plan.
        experiment: the experiment of the plan, without results.
        recorded: the run.
        setup: of the replays.
        execute: runs a replay.
        budget: of the experiment, over all its processes.
        cost: of a live call, if known.
        day: the budget of the day over all runs; None for none.
        jobs: replays that run at the same time, if their plan allows it.
        changed: called after each change of the state.
        pauses: seconds between attempts while the database does not answer.
    """

    def __init__(
        self,
        store: Store,
        plan: ReplayPlan,
        experiment: _Asking,
        recorded: Trajectory,
        setup: Setup,
        execute: Execute,
        budget: Budget,
        *,
        cost: CallCost | None = None,
        day: DailyBudget | None = None,
        jobs: int = 1,
        changed: Callable[[Progress], None] = lambda _progress: None,
        pauses: Sequence[float] = _PAUSES,
    ) -> None:
        self._store, self._plan = store, plan
        self._experiment, self._recorded, self._setup = experiment, recorded, setup
        self._execute = execute
        self._account = Account(budget, cost)
        self._day = day
        self._jobs = jobs
        self._changed = changed
        self._pauses = pauses
        self._interrupted = Event()
        self._told = 0
        self._not_isolated = ""

    def resume(self) -> int:
        """Tell the experiment the stored results; return their number.

        A replay without a result was interrupted: it is stored as an error with the calls that were
        reserved for it. On another machine it may still run until its time limit has passed.

        Raises:
            CannotContinue: the results do not belong to the experiment, or another process runs it or
                has planned another one.
            StorageError: the database does not answer.
        """
        plan = self._plan
        stored = stored_plan(self._store, plan.project, plan.trace_id, name=plan.name)
        if stored is not None and stored.text != plan.text:
            # Two machines may plan at the same moment: the earlier plan stays.
            raise self._taken()
        for open_ in reservations_of(self._store, self._plan):
            if is_running_elsewhere(open_.holder):
                raise self._taken()
            if is_on_another_machine(open_.holder) and (left := self._longest_left(open_)) > 0:
                host = open_.holder.partition("/")[0]
                raise CannotContinue(
                    f"a process on {host} replays run {plan.trace_id}; it counts as ended in {left:.0f} s, "
                    "if it is not heard of before"
                )
            lost = ArmResult(
                open_.arm,
                "error",
                reason=INTERRUPTED,
                phase=open_.phase,
                pair=open_.pair,
                live_calls=open_.live_calls,
                cost_usd=open_.cost_usd,
                started_at=open_.started_at,
            )
            self._record(open_.sequence, lost)
        results = results_of(self._store, self._plan)
        for result in results:
            self._tell(result)
        return len(results)

    def replay(self) -> Exhausted | None:
        """Run replays until the experiment or the budget ends; return the limit that ended it, if any.

        Raises:
            StorageError: the database did not answer for a minute.
            MastTraceError: a replay could not be started.
        """
        with ThreadPoolExecutor(self._jobs) as pool:
            try:
                while trials := self._next():
                    self._changed(self.progress(trials[0]))
                    self._together(trials, pool)
            except Exhausted as limit:
                return limit
            except KeyboardInterrupt:
                self._interrupted.set()
                kill_all()
                raise
        return None

    def _next(self) -> Sequence[ReplayTrial]:
        if self._not_isolated:
            return ()
        return self._experiment.waiting()[: self._jobs]

    def _together(self, trials: Sequence[ReplayTrial], pool: ThreadPoolExecutor) -> None:
        """Run replays at the same time, and tell their results in the order of the trials."""
        first = self._told
        started: list[tuple[ReplayTrial, ReplayAllowance, int | None]] = []
        for number, trial in enumerate(trials, first):
            try:
                started.append(self._reserve(number, trial, [each[1] for each in started]))
            except Exhausted:
                if not started:
                    raise
                break
        if len(started) == 1:
            results = [self._one(first, *started[0])]
        else:
            waiting = [
                pool.submit(self._one, number, *each) for number, each in enumerate(started, first)
            ]
            results = [each.result() for each in waiting]
        for result in results:
            self._tell(result)

    def _reserve(
        self, number: int, trial: ReplayTrial, running: Sequence[ReplayAllowance]
    ) -> tuple[ReplayTrial, ReplayAllowance, int | None]:
        allowance = self._account.allow(trial, running)
        of_day = None
        if self._day is not None:
            try:
                of_day = self._day.reserve(allowance.calls, allowance.cost_usd or 0.0)
            except BudgetExhausted as limit:
                raise Exhausted(str(limit), of_day=True) from None
        mine = self._patiently(
            lambda: reserve(
                self._store,
                self._plan,
                number,
                trial.arm,
                live_calls=allowance.calls,
                cost_usd=allowance.cost_usd,
                phase=trial.phase,
                pair=trial.pair,
                span_id=self._span_of(trial),
            )
        )
        if not mine:
            if self._day is not None and of_day is not None:
                self._day.settle(of_day, 0, 0.0)
            raise self._taken()
        return trial, allowance, of_day

    def _taken(self) -> CannotContinue:
        return CannotContinue(
            f"another process replays run {self._plan.trace_id}; wait until it has ended"
        )

    def _one(
        self, number: int, trial: ReplayTrial, allowance: ReplayAllowance, of_day: int | None
    ) -> ArmResult:
        done = self._execute(trial, allowance)
        if self._interrupted.is_set():  # the program was killed: its end says nothing
            raise KeyboardInterrupt
        result = replace(done, phase=trial.phase, pair=trial.pair)
        try:
            self._record(number, result)
        finally:
            if self._day is not None and of_day is not None:
                self._day.settle(of_day, result.live_calls, result.cost_usd)
        return result

    def _record(self, number: int, result: ArmResult) -> None:
        """Store a result, or give up where another process has stored its own under the number.

        The experiment would otherwise go on from a result that no later process finds.
        """
        span_id = self._span_of(result)
        stored = self._patiently(
            lambda: record_result(self._store, self._plan, number, result, span_id=span_id)
        )
        if stored:
            return
        # The first of two attempts may have been stored although its answer was lost.
        found = self._patiently(lambda: result_at(self._store, self._plan, number))
        if found != result:
            raise self._taken()

    def _longest_left(self, open_: Reservation) -> float:
        """Return the seconds after which a replay has certainly ended: reset, program and oracle."""
        longest = self._setup.timeout + 2 * self._setup.check_timeout + _MARGIN
        return longest - (datetime.now(timezone.utc) - open_.started_at).total_seconds()

    def _tell(self, result: ArmResult) -> None:
        try:
            self._experiment.tell(result)
        except ResultMismatch as error:
            raise CannotContinue(
                f"the stored replays of run {self._plan.trace_id} do not belong to this experiment: "
                f"{error}"
            ) from error
        self._account.add([result])
        reason = not_isolated(self._recorded, result, self._setup)
        self._not_isolated = self._not_isolated or reason
        self._told += 1

    def progress(self, trial: ReplayTrial | None = None) -> Progress:
        """Return the state, with phase and step of a replay that is about to start."""
        account = self._account
        return Progress(
            phase=trial.phase if trial else "",
            step=trial.arm.step if trial else -1,
            replays=self._told,
            live_calls=account.calls,
            cost_usd=account.cost_usd,
        )

    def _span_of(self, replay: ReplayTrial | ArmResult) -> str:
        steps, step = self._recorded.steps, replay.arm.step
        known = replay.phase != RECOVERY and 0 <= step < len(steps)
        return steps[step].span_id if known else ""

    def _patiently(self, attempt: Callable[[], _T]) -> _T:
        """Call a function of the store again while the database does not answer; once after an interruption."""
        for pause in self._pauses:
            try:
                return attempt()
            except SchemaMismatch:
                raise
            except StorageError:
                if self._interrupted.wait(pause):
                    break
        return attempt()
