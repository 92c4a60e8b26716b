"""The self-test of a system: records it, plants faults, judges the faulty runs, and stores the shares."""

from __future__ import annotations

import asyncio
import dataclasses
import hashlib
import json
from collections import Counter
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Final

from mast_trace.exceptions import MastTraceError
from mast_trace.replay.comparison import first_difference
from mast_trace_collector.storage.runs import RunSummary, run_summary
from mast_trace_judge.batch import read_alone
from mast_trace_judge.judge import Judge
from mast_trace_lab.inject.experiment import LEAST_SUCCESS
from mast_trace_lab.inject.injecting import NotInjectable, inject
from mast_trace_lab.program.forking import Forking, parent_of
from mast_trace_lab.program.process import oracle_of
from mast_trace_lab.program.recording import NotRecorded, record, recorded
from mast_trace_lab.selftest.examination import (
    LABELLED,
    JudgeOpinion,
    fitted,
    measured,
    opinion_of,
    survivors_of,
    without_outcome,
)
from mast_trace_lab.selftest.store import SelfTest, save_selftest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mast_trace.trajectory import Trajectory
    from mast_trace_collector.storage import Store
    from mast_trace_dashboards.programs import Program
    from mast_trace_judge.config import JudgeConfig
    from mast_trace_judge.store.injections import Injection
    from mast_trace_lab.program.budget import Budget
    from mast_trace_lab.program.conducting import Progress as State
    from mast_trace_lab.program.setup import Setup
    from mast_trace_lab.replay.options import PriceTable

VERSION: Final = 1
"""Version of the procedure; another one makes another self-test."""


class NotExaminable(MastTraceError):
    """The system cannot be examined; the text says why."""


@dataclass(frozen=True)
class SelfTestPlan:
    """All that decides about a self-test, apart from its budget.

    Attributes:
        program: with the modules from which replays are forked, and their number at a time.
        setup: program, oracle, reset and live tools.
        tasks: texts that replace ``{task}`` in the command; empty for a command without it.
        runs: runs that are recorded.
        count: most faults in all.
        only: operators, or codes of failure modes; all if empty.
        seed: decides steps, numbers and phrasings.
        prices: looks up the prices of a run's models.
    """

    program: Program
    setup: Setup
    tasks: tuple[str, ...]
    runs: int
    count: int
    only: tuple[str, ...]
    seed: int
    prices: PriceTable

    @property
    def id(self) -> str:
        """Equal for equal plans."""
        shape = [VERSION, self.setup.to_plain(), self.tasks, self.runs, self.only, self.seed]
        return hashlib.sha256(json.dumps(shape, sort_keys=True).encode()).hexdigest()[:16]

    def setup_for(self, number: int) -> Setup:
        """Return the setup of one recorded run: its command with its task."""
        if not self.tasks:
            return self.setup
        task = self.tasks[number % len(self.tasks)]
        command = tuple(part.replace("{task}", task) for part in self.setup.command)
        return dataclasses.replace(self.setup, command=command)


@dataclass(frozen=True)
class Reports:
    """Functions that are told of the progress.

    Attributes:
        advanced: called with a stage's name, steps done, and steps in all; 0 if unknown.
        warn: called with what the person should know.
    """

    advanced: Callable[[str, int, int], None] = lambda _what, _done, _total: None
    warn: Callable[[str], None] = lambda _text: None


@dataclass(frozen=True)
class Examined:
    """The end of a self-test.

    Attributes:
        test: the stored result.
        verdicts: number of decided faults by decision.
        replays: number of replays, of earlier processes as well.
        live_calls: their live model calls, with those of the recordings.
        limit: the limit that ended it before all faults were decided; empty if none did.
    """

    test: SelfTest
    verdicts: Mapping[str, int]
    replays: int
    live_calls: int
    limit: str

    @property
    def faults(self) -> int:
        """Number of decided faults."""
        return sum(self.verdicts.values())


@dataclass(frozen=True)
class _Healthy:
    """A recorded run that succeeded, with the setup of its replays."""

    summary: RunSummary
    run: Trajectory
    setup: Setup


def examine(
    store: Store, plan: SelfTestPlan, budget: Budget, config: JudgeConfig, reports: Reports
) -> Examined:
    """Examine the judge on a system, and store the result.

    A self-test that was stopped goes on after its stored runs and replays when it is called with an equal plan.

    Args:
        store: the database.
        plan: what is recorded and planted.
        budget: of recordings and replays together.
        config: of the judge that is examined.
        reports: told of the progress.

    Raises:
        NotExaminable: the system fails in more than half of its runs, or no fault can be planted.
        NotRecorded: the program records no run.
        StorageError: the database does not answer.
        OSError: the command cannot be started.
    """
    healthy, calls = _recorded(store, plan, budget, reports)
    different = _different(healthy)
    framework, left = different[0].run.framework, budget.without(calls, 0.0)
    with parent_of(plan.program, framework, reports.warn) as parent:
        planted, replays, live, limit = _planted(store, plan, different, parent, left, reports)
    faults = [each for each in planted if each.verdict in LABELLED and each.run is not None]
    runs = [without_outcome(each.run) for each in different]
    survivors = survivors_of(faults)
    judged, version = asyncio.run(_judged(config, different, faults, runs, survivors, reports))
    before = {fault.fault_id: judged[place] for place, fault in enumerate(faults)}
    accused, hidden = judged[len(faults) :][: len(runs)], judged[len(faults) + len(runs) :]
    after = fitted(faults, reports.advanced)
    first = different[0]
    test = SelfTest(
        id=plan.id,
        project=first.summary.project,
        service=first.summary.service,
        framework=first.run.framework,
        judge_version=version,
        operators=tuple(sorted({each.operator for each in faults})),
        originals=len({each.original for each in faults}),
        shares=measured(
            faults, runs, before, accused, after, dict(zip(survivors, hidden, strict=True))
        ),
        measured_at=datetime.now(timezone.utc),
    )
    save_selftest(store, test)
    verdicts = Counter(each.verdict for each in planted)
    return Examined(test, verdicts, replays, calls + live, limit)


def _recorded(
    store: Store, plan: SelfTestPlan, budget: Budget, reports: Reports
) -> tuple[list[_Healthy], int]:
    """Record what is missing; return the runs that succeeded, and the model calls of all."""
    healthy: list[_Healthy] = []
    calls = tried = 0
    oracle = oracle_of(plan.setup.oracle, plan.setup.check_timeout)
    for number in range(plan.runs):
        reports.advanced("Recording", number, plan.runs)
        if budget.max_calls is not None and calls >= budget.max_calls:
            raise NotExaminable(
                f"{calls} model calls were made by {number} recordings, and --max-calls allows "
                f"{budget.max_calls}: raise it, or lower --runs"
            )
        label, setup = f"selftest {plan.id} {number}", plan.setup_for(number)
        try:
            found = recorded(store, label) or record(
                store, setup.command, label=label, timeout=setup.timeout
            )
        except NotRecorded as error:
            if not number:
                raise
            reports.warn(f"Recording {number + 1}: {error}.")
            tried += 1
            continue
        for each in found:
            summary = run_summary(store, each.trace_id, project=each.project)
            if summary is None:
                continue
            run = read_alone(store, summary)
            calls += sum(call.kind == "model" for call in run.invocations)
            tried += 1
            if run.outcome == "success" or (
                oracle is not None and oracle.ask(run.final_answer).success
            ):
                healthy.append(_Healthy(summary, run, setup))
    reports.advanced("Recording", plan.runs, plan.runs)
    if len(healthy) < max(1.0, LEAST_SUCCESS * tried):
        raise NotExaminable(
            f"{len(healthy)} of {tried} recorded runs succeeded: a system that fails by itself cannot show which "
            "failure a fault has caused. A program tells success by mast_trace.record_outcome, or by --set oracle=COMMAND"
        )
    return healthy, calls


def _different(healthy: Sequence[_Healthy]) -> list[_Healthy]:
    """Return one of all runs in which the same happened: its copies would say nothing more."""
    found: list[_Healthy] = []
    for each in healthy:
        if all(first_difference(other.run, each.run) is not None for other in found):
            found.append(each)
    return found


def _planted(
    store: Store,
    plan: SelfTestPlan,
    healthy: Sequence[_Healthy],
    parent: Forking,
    budget: Budget,
    reports: Reports,
) -> tuple[list[Injection], int, int, str]:
    """Plant faults; return them with the replays, the live calls, and the limit that ended it."""
    planted: list[Injection] = []
    passed: Counter[str] = Counter()
    replays = calls = 0
    refused: list[str] = []
    for number, each in enumerate(healthy):
        share = -(-(plan.count - len(planted)) // (len(healthy) - number))

        def changed(state: State, done: int = len(planted)) -> None:
            reports.advanced(f"Faults ({state.replays} replays in this run)", done, plan.count)

        try:
            made = inject(
                store,
                each.summary,
                each.run,
                dataclasses.replace(each.setup, prices=plan.prices(each.run), parent=parent),
                budget,
                seed=plan.seed,
                count=share,
                only=plan.only,
                passed=passed,
                jobs=plan.program.jobs,
                changed=changed,
            )
        except NotInjectable as error:
            refused.append(str(error))
            continue
        if made.refused:
            refused.append(made.refused)
        planted += made.injections
        passed.update(one.operator for one in made.injections)
        replays, calls = replays + made.replays, calls + made.live_calls
        budget = budget.without(made.live_calls, made.cost_usd)
        if made.limit:
            return planted, replays, calls, made.limit
    if not planted:
        raise NotExaminable("; ".join(dict.fromkeys(refused)) or "no fault could be planted")
    for reason in dict.fromkeys(refused):
        reports.warn(f"A run was left out: {reason}.")
    return planted, replays, calls, ""


async def _judged(
    config: JudgeConfig,
    healthy: Sequence[_Healthy],
    faults: Sequence[Injection],
    runs: Sequence[Trajectory],
    survivors: Mapping[str, Trajectory],
    reports: Reports,
) -> tuple[list[JudgeOpinion], str]:
    """Return the judge's answers on faulty runs, on healthy ones, and on survivors, in this order, and its version.

    Its model calls are in no ledger: they are none of the system's own runs.
    """
    judge = Judge(config)
    summaries = {each.run.trace_id: each.summary for each in healthy}
    faulty = [(summaries[each.original], each.run) for each in faults if each.run is not None]
    whole = [
        *faulty,
        *zip((each.summary for each in healthy), runs, strict=True),
        # A survivor is read a second time, by a judge that is not told that it succeeded.
        *(
            (summaries[each.original], survivors[each.fault_id])
            for each in faults
            if each.fault_id in survivors
        ),
    ]
    answers: list[JudgeOpinion] = []
    try:
        for number, (summary, run) in enumerate(whole):
            reports.advanced("Judging", number, len(whole))
            of_run = dataclasses.replace(summary, outcome=run.outcome)
            answers.append(opinion_of(await judge.judge(of_run, run)))
    finally:
        await judge.aclose()
    reports.advanced("Judging", len(whole), len(whole))
    return answers, judge.version
