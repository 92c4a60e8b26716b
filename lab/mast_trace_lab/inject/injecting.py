"""Injects faults into one successful run: replays, decisions, and the labels that are stored.

Faults that earlier injections into a run have decided are not tried again. Another seed, count or choice of operators makes
another plan, in which they may stand. To try such a fault anew until it is kept would let chance decide, and the evidence of a
second trial starts from nothing.
"""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from mast_trace.exceptions import MastTraceError
from mast_trace.replay.recording import NotReplayable, tape_of
from mast_trace_judge.arms import RECOVERY, ArmResult
from mast_trace_judge.decision_points import decision_points
from mast_trace_judge.local.attribution.recorded import decisions
from mast_trace_judge.store.injections import (
    PLAN,
    Injection,
    plans_of_faults,
    save_injection,
    stored_run,
)
from mast_trace_judge.store.replay_plans import ReplayPlan, plan_of, plans_of_run
from mast_trace_judge.store.replays import reservations_of, results_of
from mast_trace_lab.inject.experiment import RULES, InjectionExperiment
from mast_trace_lab.inject.faults import Fault, most_faults_of
from mast_trace_lab.inject.trial import Trial, later_steps, with_readable_run
from mast_trace_lab.program.budget import Budget, ReplayAllowance, ReplayTrial, check_limits
from mast_trace_lab.program.conducting import Conducting, Progress
from mast_trace_lab.replay.arm_runner import executing

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mast_trace.trajectory import Trajectory
    from mast_trace_collector.storage import Store
    from mast_trace_collector.storage.runs import RunSummary
    from mast_trace_lab.inject.phrasings import Phrasings
    from mast_trace_lab.program.setup import Setup


DECIDED: Final = frozenset({"kept", "repaired", "survived", "unproved"})
"""Verdicts that stay; what was censored may be tried again, under another limit or on a quieter machine."""
_PHASES: Final = frozenset({"injection", RECOVERY})


@dataclass(frozen=True)
class Earlier:
    """A fault that an earlier injection has decided.

    Attributes:
        trial: its trial, with the stored results.
        seed: by which it was chosen then.
        plan_id: of that injection.
    """

    trial: Trial
    seed: int
    plan_id: str


def decided_before(
    store: Store,
    plan: ReplayPlan,
    faults: Sequence[Fault],
    later: Callable[[int, str], Sequence[int] | None],
    *,
    prefix: str,
) -> Mapping[int, Earlier]:
    """Return the faults of a plan that other injections with the same setup have decided, by number.

    A fault that this plan has begun to replay is not among them, so that a resumed injection goes on as it began; nor
    is one whose label is no longer stored, or is another setup's, or that was decided by the rules of an earlier version.

    Args:
        store: the database.
        plan: the plan.
        faults: its faults.
        later: see `mast_trace_lab.inject.trial.Trial`, by number of the fault and id of the plan.
        prefix: of the names of plans of injections.

    Raises:
        StorageError: the database does not answer.
    """
    others = [
        (each, json.loads(each.text))
        for each in plans_of_run(store, plan.project, plan.trace_id, prefix=prefix)
        if each.plan_id != plan.plan_id and each.fingerprint == plan.fingerprint
    ]
    own = json.loads(plan.text)
    same = ("setup", "rules")
    others = [
        (each, shape)
        for each, shape in others
        if all(shape.get(key) == own.get(key) for key in same)
    ]
    if not others:
        return {}
    begun = {each.pair for each in results_of(store, plan) if each.phase in _PHASES}
    begun |= {each.pair for each in reservations_of(store, plan) if each.phase in _PHASES}
    stored = plans_of_faults(store, plan.project, plan.trace_id)
    found: dict[int, Earlier] = {}
    for other, shape in others:
        numbers = {identity: number for number, identity in enumerate(shape["faults"])}
        results = results_of(store, other)
        clean = [each for each in results if each.phase not in _PHASES]
        for number, fault in enumerate(faults):
            if number in begun or number in found or fault.id not in numbers:
                continue
            if stored.get(fault.id) != other.plan_id:
                continue
            trial = Trial(fault, later=partial(later, number, other.plan_id), clean=clean)
            for each in results:
                if each.phase in _PHASES and each.pair == numbers[fault.id]:
                    trial.tell(each)
            if trial.verdict in DECIDED and trial.ask() is None:
                found[number] = Earlier(trial, int(shape["seed"]), other.plan_id)
    return found


NAME: Final = "inject"
STOPPED: Final = "interrupted"
"""The limit of an injection that a person or SIGTERM has ended."""


class NotInjectable(MastTraceError):
    """No fault can be planted in the run; the text says why."""


@dataclass(frozen=True)
class Injected:
    """The end of the injections into one run.

    Attributes:
        injections: the decided faults, as they were stored.
        refused: the reason why the run was refused; empty if it was not.
        limit: the limit that ended it before all faults were decided; empty if none did.
        replays: number of replays.
        live_calls: model calls that were sent to a model, of all replays.
        cost_usd: their cost, as far as known.
        skipped: number of `injections` that earlier ones into the same run had decided, and that were not replayed again.
    """

    injections: tuple[Injection, ...]
    refused: str
    limit: str
    replays: int
    live_calls: int
    cost_usd: float
    skipped: int = 0


def inject(
    store: Store,
    run: RunSummary,
    recorded: Trajectory,
    setup: Setup,
    budget: Budget,
    *,
    seed: int,
    count: int,
    only: Sequence[str] = (),
    passed: Mapping[str, int] | None = None,
    phrasings: Phrasings | None = None,
    jobs: int = 1,
    changed: Callable[[Progress], None] = lambda _progress: None,
) -> Injected:
    """Plant faults in a run, one at a time in each job, and store those that are decided.

    A stopped injection goes on after its stored results when it is called again with the same seed,
    operators and command. Faults that another one with the same setup has decided are not replayed again.

    Args:
        store: the database.
        run: the original run.
        recorded: the same run, read.
        setup: program, oracle and reset; its fixes are not used.
        budget: of the replays of this run.
        seed: decides the faults.
        count: most faults of this run.
        only: names of operators, or codes of failure modes; all if empty.
        passed: number of faults by operator that other runs have given already.
        phrasings: sentences of a model; the rules' alone if None.
        jobs: faults that are tried at the same time.
        changed: called after each change of the state.

    Raises:
        NotInjectable: the run has not succeeded, or no operator applies.
        NotReplayable: the record lacks data that a replay needs.
        ConfigurationError: an operator does not exist, or the limits cannot be held, see `check_limits`.
        StorageError: the database does not answer.
        OSError: the command cannot be started.
    """
    if recorded.outcome != "success" and not setup.oracle:
        raise NotInjectable(
            f"run {recorded.trace_id} has not succeeded as far as its program records; faults are planted "
            "in successful runs"
        )
    setup.tape(recorded)  # refused before a replay is planned
    faults = most_faults_of(recorded, seed, count, only, passed, phrasings, setup.executed)
    if not faults:
        raise NotInjectable(f"no operator applies to run {recorded.trace_id}")
    points = decision_points(recorded)
    after = {point.step: len(points) - place for place, point in enumerate(points)}
    seen: dict[int, Trajectory] = {}

    def failed(number: int, plan_id: str) -> Trajectory | None:
        """Return the run of a fault that a plan has stored; another plan's may have another outcome."""
        known, identity = seen.get(number), faults[number].id
        return known or stored_run(store, run.project, recorded.trace_id, identity, plan_id)

    def later(number: int, plan_id: str) -> tuple[int, ...] | None:
        made = failed(number, plan_id)
        if made is None or not _is_replayable(made, setup.executed):
            return None
        return later_steps(made, faults[number])

    identities = [fault.id for fault in faults]
    shape = {"rules": RULES, "setup": setup.to_plain(), "seed": seed, "faults": identities}
    text = json.dumps(shape, sort_keys=True)
    plan = plan_of(store, run, text, name=f"{NAME} {_digest(text)}")
    earlier = decided_before(store, plan, faults, later, prefix=f"{NAME} ")
    known_trials = {number: each.trial for number, each in earlier.items()}
    own = plan.plan_id
    experiment = InjectionExperiment(
        faults, len(points), after, lambda number: later(number, own), known_trials, jobs
    )

    def keep(number: int) -> None:
        """Store a faulty run at once, so that a kill does not lose it."""
        trial = experiment.trials[number]
        save_injection(store, _labelled(trial, run, recorded, seed, own, seen[number]), run)

    cost = check_limits(recorded, setup, budget, jobs=jobs)
    work = Conducting(
        store,
        plan,
        experiment,
        recorded,
        setup,
        _executing(recorded, setup, experiment, seen, keep, lambda number: failed(number, own)),
        budget,
        cost=cost,
        jobs=jobs,
        changed=changed,
    )
    work.resume()
    limit = _run(work)
    stored = plans_of_faults(store, run.project, recorded.trace_id)
    done = []
    for number, trial in sorted({**dict(enumerate(experiment.trials)), **known_trials}.items()):
        if trial.verdict == "open":
            continue
        before = earlier.get(number)
        chosen_by, planned_by = (before.seed, before.plan_id) if before else (seed, own)
        made = failed(number, planned_by)
        injection = _labelled(trial, run, recorded, chosen_by, planned_by, made)
        if made is not None or stored.get(injection.fault_id, own) == own:
            save_injection(
                store, injection, run
            )  # without a run it displaces no label of another setup
        done.append(injection)
    state = work.progress()
    return Injected(
        tuple(done),
        experiment.refused,
        limit,
        state.replays,
        state.live_calls,
        state.cost_usd,
        len(earlier),
    )


def _run(work: Conducting[InjectionExperiment]) -> str:
    """Run the replays; return what has ended them before all faults were decided, empty if nothing has."""
    try:
        return str(work.replay() or "")
    except KeyboardInterrupt:
        return STOPPED


def _executing(
    recorded: Trajectory,
    setup: Setup,
    experiment: InjectionExperiment,
    seen: dict[int, Trajectory],
    keep: Callable[[int], None],
    failed: Callable[[int], Trajectory | None],
) -> Callable[[ReplayTrial, ReplayAllowance], ArmResult]:
    """Return a function that runs one replay, and keeps a faulty run of each fault, failures first."""
    told = setup.with_task(recorded.task)  # that of a faulty run may have been lost

    def execute(trial: ReplayTrial, allowance: ReplayAllowance) -> ArmResult:
        made: list[Trajectory] = []
        of = (failed(trial.pair) if trial.phase == RECOVERY else None) or recorded
        result = executing(of, told, made.append)(trial, allowance)
        if trial.phase != "injection":
            return result
        tried = experiment.trials[trial.pair]
        if trial.arm == tried.restore:
            return result
        result = with_readable_run(result, made[0] if made else None, trial.arm.step)
        success = tried.outcome_of(result)
        if made and success is not None:
            outcome = "success" if success else "failure"
            known = failed(trial.pair)  # perhaps by an earlier process
            surer = tried.is_surer(result)
            if known is None or (not success and (known.outcome == "success" or surer)):
                faulty_run = dataclasses.replace(made[0], outcome=outcome)
                if result.status == "timeout":  # the span that names run and task has not ended
                    faulty_run = dataclasses.replace(
                        faulty_run, task=recorded.task, name=recorded.name
                    )
                seen[trial.pair] = faulty_run
                keep(trial.pair)
        return result

    return execute


def _is_replayable(made: Trajectory, live_tools: Sequence[str]) -> bool:
    try:
        tape_of(made, live_tools=live_tools)
    except NotReplayable:
        return False
    return True


def _labelled(
    trial: Trial,
    run: RunSummary,
    recorded: Trajectory,
    seed: int,
    plan_id: str,
    made: Trajectory | None,
) -> Injection:
    fault = trial.fault
    faulty = [each for each in map(trial.outcome_of, trial.faulty) if each is not None]
    restored = [each for each in trial.restored if each.success is not None]
    return Injection(
        project=run.project,
        original=recorded.trace_id,
        fault_id=fault.id,
        operator=fault.operator,
        mode=fault.mode,
        level=fault.change.level,
        step=fault.change.step,
        agent=fault.agent,
        missed_by=_missed_by(fault, made) if made and trial.verdict == "kept" else (),
        verdict=trial.verdict,
        decisive=trial.is_decisive,
        deterministic=trial.is_deterministic,
        faulty=len(faulty),
        faulty_failures=sum(not each for each in faulty),
        restored=len(restored),
        restored_successes=sum(bool(each.success) for each in restored),
        e_value=trial.e_value,
        success_after=trial.success_after,
        point_of_no_return=trial.point_of_no_return,
        phrasing=fault.change.phrasing,
        seed=seed,
        service=run.service,
        framework=recorded.framework,
        run=made,
        change={**_plain(fault), PLAN: plan_id},
    )


def _missed_by(fault: Fault, made: Trajectory) -> tuple[str, ...]:
    """Return the agents that acted after the fault in the faulty run, and so might have noticed it, in order.

    The agent to blame is none of them; nobody is to blame for a tool's result, or for a message that was changed on
    its way. The first one who might have noticed such a message is its receiver, in the step itself.
    """
    first = fault.change.step + (fault.change.level != "message")
    later = [made.steps[place] for place in decisions(made.steps) if place >= first]
    blamed = fault.agent if fault.mode else ""
    return tuple(dict.fromkeys(each.agent for each in later if each.agent not in {"", blamed}))


def _plain(fault: Fault) -> dict[str, object]:
    shape = fault.change.to_plain()
    shape.pop("phrasing")
    return {key: value for key, value in shape.items() if value not in (None, "", ())}


def _digest(text: str) -> str:
    from mast_trace.content import content_hash

    return content_hash(text)[:16]
