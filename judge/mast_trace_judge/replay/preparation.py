"""Checks whether a run can be confirmed, and makes its experiment or finds the stored one."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from mast_trace.exceptions import MastTraceError
from mast_trace.replay.recording import tape_of
from mast_trace_judge.replay.arm_runner import run_arm
from mast_trace_judge.replay.arms import Arm, Fix
from mast_trace_judge.replay.candidates import judge_fix, prior_of
from mast_trace_judge.replay.execution import arm_settings
from mast_trace_judge.replay.fixes import RefusedFix, Sources, planned_fixes
from mast_trace_judge.replay.oracle import oracle_of
from mast_trace_judge.replay.points import decision_points
from mast_trace_judge.replay.reset import reset
from mast_trace_judge.replay.statistics import Experiment, Limits
from mast_trace_judge.store.replays import CONFIRM, plan_of, stored_plan

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mast_trace.trajectory import Trajectory
    from mast_trace_collector.storage import Store
    from mast_trace_collector.storage.runs import RunSummary
    from mast_trace_judge.replay.points import Point
    from mast_trace_judge.replay.setup import Setup
    from mast_trace_judge.store.replays import Plan
    from mast_trace_judge.verdict import Verdict

_VERIFICATIONS: Final = 3
"""Replays that change nothing where the program records its outcome: they show whether it is stable."""


class NotConfirmable(MastTraceError):
    """The run cannot be confirmed; the text says why, and what to do."""


@dataclass(frozen=True)
class Prepared:
    """An experiment that is ready to be run.

    Attributes:
        plan: the stored plan.
        experiment: the experiment, without results.
        recorded: the run.
        refused: corrections that are not tried.
        number: 1 for the first experiment of the run; later ones have other fixes or programs.
    """

    plan: Plan
    experiment: Experiment
    recorded: Trajectory
    refused: tuple[RefusedFix, ...] = ()
    number: int = 1


def check(recorded: Trajectory, setup: Setup) -> tuple[Point, ...]:
    """Return the decision points of a run that can be confirmed; nothing is started.

    Raises:
        NotConfirmable: the run has not failed, or has no decision point.
        NotReplayable: the record lacks data that a replay needs.
    """
    tape_of(recorded)
    if not setup.oracle and recorded.outcome != "failure":
        raise NotConfirmable(
            f"run {recorded.trace_id} {_OUTCOMES.get(recorded.outcome, 'has no outcome')}; only failed "
            "runs have a decisive error. Record the outcome in the program "
            "(mast_trace.record_outcome), or name a command that judges answers: --oracle"
        )
    points = decision_points(recorded)
    if not points:
        raise NotConfirmable(f"no step of run {recorded.trace_id} is the answer of a model")
    return points


def expected_calls(points: Sequence[Point], setup: Setup) -> int:
    """Return an estimate of the live model calls of a new experiment."""
    if setup.outside_state:
        return 0
    return Experiment(points, prior={}, sources={}, limits=_limits(setup)).expected_calls()


def check_oracle(recorded: Trajectory, setup: Setup) -> None:
    """Ask the oracle about the recorded answer.

    Raises:
        NotConfirmable: it takes the answer for right, or cannot tell.
    """
    oracle = oracle_of(setup.oracle, setup.check_timeout)
    if oracle is None:
        return
    opinion = oracle.ask(recorded.final_answer)
    if opinion.success is None:
        raise NotConfirmable(f"the recorded answer cannot be judged: {opinion.reason}")
    if opinion.success:
        raise NotConfirmable(
            f"the oracle takes the answer of run {recorded.trace_id} for right, so there is no "
            "decisive error to confirm"
        )


_OUTCOMES: Final = {"success": "succeeded"}


def verify(recorded: Trajectory, setup: Setup) -> None:
    """Replay a run without a change, as a condition of all further replays; no model is asked.

    Raises:
        NotConfirmable: the replay is not identical, or its outcome is not a failure.
        ResetFailed: the state outside the program could not be restored.
        OSError: the command cannot be started.
    """
    if setup.reset:
        reset(setup.reset, setup.check_timeout)
    done = run_arm(
        recorded, setup.command, Arm("verify"), settings=arm_settings(setup, max_calls=0)
    )
    if done.status != "ok":
        raise NotConfirmable(
            f"a replay of run {recorded.trace_id} that changes nothing is not identical "
            f"({done.status}): {done.reason} `mast-trace replay` shows the difference"
        )
    if done.success:
        raise NotConfirmable(
            f"a replay of run {recorded.trace_id} that changes nothing succeeds, while the recorded run "
            "failed: its outcome depends on something besides its models and tools"
        )


def stored_experiment(
    store: Store, run: RunSummary, recorded: Trajectory, points: Sequence[Point], setup: Setup
) -> Prepared | None:
    """Return the run's stored experiment with this setup; None if there is none.

    Raises:
        NotConfirmable: a stored plan cannot be read.
        StorageError: the database does not answer.
    """
    known = _stored_plans(store, run)
    for number, (plan, shape) in enumerate(known, 1):
        if shape["setup"] == setup.to_plain() and plan.fingerprint == run.fingerprint:
            spent = sum(other["planned"] for each, other in known if each is not plan)
            made = _experiment(plan, shape, points, setup, spent)
            refused = tuple(RefusedFix(*each) for each in shape["refused"])
            return Prepared(plan, made, recorded, refused, number)
    return None


def new_experiment(
    store: Store,
    run: RunSummary,
    recorded: Trajectory,
    points: Sequence[Point],
    verdict: Verdict | None,
    setup: Setup,
    *,
    limits: Limits | None = None,
) -> Prepared:
    """Check the oracle, replay the run without a change, and store the plan of a new experiment.

    Its thresholds count the contrasts of all earlier experiments of the run, so that trying again with
    other fixes or another program is not rewarded.

    Raises:
        NotConfirmable: the run cannot be confirmed; no plan was stored.
        ConfigurationError: a fix names a step that cannot be corrected.
        ResetFailed: the state outside the program could not be restored.
        OSError: the command cannot be started.
        StorageError: the database does not answer.
    """
    check_oracle(recorded, setup)
    if not setup.outside_state:
        verify(recorded, setup)
    known = _stored_plans(store, run)
    fixes, refused = _fixes(recorded, points, verdict, setup, run.outcome_reason)
    limits = limits or _limits(setup)
    shape = {
        "setup": setup.to_plain(),
        "prior": {str(step): value for step, value in prior_of(verdict, points).items()},
        "sources": {
            str(step): [[fix.source, fix.text, fix.model] for fix in given]
            for step, given in fixes.items()
        },
        "limits": [limits.verifications, limits.scores, limits.screening_runs, limits.pair_runs],
        "refused": [[each.step, each.source, each.reason] for each in refused],
        "planned": 0,
    }
    # An experiment that is not isolated asks for no replay, so that it tests nothing.
    if not setup.outside_state:
        shape["planned"] = _experiment(None, shape, points, setup, 0).plan.planned
    plan = plan_of(store, run, json.dumps(shape, ensure_ascii=False), name=_name(len(known) + 1))
    spent = sum(other["planned"] for _, other in known)
    made = _experiment(plan, _read(plan), points, setup, spent)
    return Prepared(plan, made, recorded, refused, len(known) + 1)


def _stored_plans(store: Store, run: RunSummary) -> list[tuple[Plan, dict[str, Any]]]:
    plans: list[tuple[Plan, dict[str, Any]]] = []
    while True:
        plan = stored_plan(store, run.project, run.trace_id, name=_name(len(plans) + 1))
        if plan is None:
            return plans
        plans.append((plan, _read(plan)))


def _name(number: int) -> str:
    return CONFIRM if number == 1 else f"{CONFIRM} {number}"


def _limits(setup: Setup) -> Limits:
    if setup.oracle:
        return Limits()
    return replace(Limits(), verifications=_VERIFICATIONS, scores=0)


def _fixes(
    recorded: Trajectory,
    points: Sequence[Point],
    verdict: Verdict | None,
    setup: Setup,
    outcome_reason: str,
) -> tuple[dict[int, tuple[Fix, ...]], tuple[RefusedFix, ...]]:
    sources = Sources(
        person=setup.fixes,
        resample=setup.resample,
        stronger_model=setup.stronger_model,
        judge=judge_fix(verdict, points),
        reference=setup.references,
        answers=tuple(filter(None, (setup.expected, outcome_reason, recorded.outcome_reason))),
    )
    return planned_fixes(recorded, points, sources, oracle_of(setup.oracle, setup.check_timeout))


def _experiment(
    plan: Plan | None,
    shape: Mapping[str, Any],
    points: Sequence[Point],
    setup: Setup,
    spent: int,
) -> Experiment:
    verifications, scores, screening, pairs = shape["limits"]
    return Experiment(
        points,
        prior={int(step): float(value) for step, value in shape["prior"].items()},
        sources={
            int(step): tuple(Fix(*each) for each in given)
            for step, given in shape["sources"].items()
        },
        limits=replace(
            Limits(),
            verifications=verifications,
            scores=scores,
            screening_runs=screening,
            pair_runs=pairs,
        ),
        seed=int(plan.plan_id[:8], 16) if plan else 0,
        not_isolated=setup.outside_state,
        spent=spent,
        plan_id=plan.plan_id if plan else "",
    )


_KEYS: Final = ("setup", "prior", "sources", "limits", "refused", "planned")


def _read(plan: Plan) -> dict[str, Any]:
    try:
        shape = json.loads(plan.text)
    except ValueError:
        shape = None
    if not isinstance(shape, dict) or any(key not in shape for key in _KEYS):
        raise NotConfirmable(
            f"the stored plan {plan.plan_id} of run {plan.trace_id} cannot be read; another version "
            "of mast-trace has made it"
        )
    return shape
