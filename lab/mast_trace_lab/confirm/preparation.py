"""Makes the experiment of a run, or finds the stored one that is to be continued."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from mast_trace.exceptions import ConfigurationError
from mast_trace.trajectory import StepKind, Trajectory
from mast_trace_judge.arms import Fix, ReplayArm
from mast_trace_judge.confirmation import Confirmation
from mast_trace_judge.decision_points import DecisionPoint, decision_points
from mast_trace_judge.store.replay_plans import CONFIRM, ReplayPlan, plan_of, stored_plan
from mast_trace_judge.store.replays import results_of
from mast_trace_judge.store.verdicts import load_judged
from mast_trace_lab.confirm.fixes import RefusedFix, Sources, planned_fixes
from mast_trace_lab.confirm.judged import judge_fix, prior_of
from mast_trace_lab.confirm.statistics import Experiment, ExperimentLimits
from mast_trace_lab.program.budget import ReplayAllowance, ReplayTrial
from mast_trace_lab.program.process import oracle_of
from mast_trace_lab.replay.arm_runner import executing
from mast_trace_lab.replay.changes import NotConfirmable
from mast_trace_lab.replay.masks import Mask, NotMaskable, propose

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mast_trace_collector.storage import Store
    from mast_trace_collector.storage.runs import RunSummary
    from mast_trace_judge.verdict import Verdict
    from mast_trace_lab.program.setup import Setup

_OUTCOMES: Final = {"success": "succeeded"}

_VERIFICATIONS: Final = 3
"""Replays that change nothing where the program records its outcome: they show whether it is stable."""
_KEYS: Final = ("setup", "prior", "sources", "limits", "refused", "earlier", "planned")


def check(recorded: Trajectory, setup: Setup) -> tuple[DecisionPoint, ...]:
    """Return the decision points of a run that can be confirmed; nothing is started.

    Raises:
        NotConfirmable: the run has not failed, or has no decision point.
        NotReplayable: the record lacks data that a replay needs.
    """
    setup.tape(recorded)
    if not setup.oracle and recorded.outcome != "failure":
        raise NotConfirmable(
            f"run {recorded.trace_id} {_OUTCOMES.get(recorded.outcome, 'has no outcome')}; only failed "
            "runs have a decisive error. Record the outcome in the program "
            "(mast_trace.record_outcome), or name a command that judges answers: --set oracle=COMMAND"
        )
    points = decision_points(recorded)
    if not points:
        raise NotConfirmable(f"no step of run {recorded.trace_id} is the answer of a model")
    return points


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


def verify(recorded: Trajectory, setup: Setup) -> None:
    """Replay a run without a change, as a condition of all further replays; no model is asked.

    Raises:
        NotConfirmable: the replay is not identical, or its outcome is not a failure.
        ResetFailed: the state outside the program could not be restored.
        OSError: the command cannot be started.
    """
    trial = ReplayTrial(ReplayArm("verify"), "verify")
    done = executing(recorded, setup)(trial, ReplayAllowance(0, 0.0))
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


@dataclass(frozen=True)
class Prepared:
    """An experiment that is ready to be run.

    Attributes:
        plan: the stored plan.
        experiment: the experiment, without results.
        refused: corrections that are not tried.
        number: 1 for the first experiment of the run; later ones have other fixes or programs.
    """

    plan: ReplayPlan
    experiment: Experiment
    refused: tuple[RefusedFix, ...] = ()
    number: int = 1


def limits_of(setup: Setup, max_calls: int | None = None) -> ExperimentLimits:
    """Return the sizes of a new experiment.

    Under a limit of live calls the search may take three fifths of them, so that enough are left for
    the proof. The limit itself is no part of the plan.
    """
    search = None if max_calls is None else max_calls * 3 // 5
    limits = replace(ExperimentLimits(), search_calls=search)
    if setup.oracle:
        return limits
    return replace(limits, verifications=_VERIFICATIONS, scores=0)


def expected_calls(points: Sequence[DecisionPoint], setup: Setup) -> int:
    """Return an estimate of the live model calls of a new experiment."""
    if setup.outside_state:
        return 0
    return Experiment(points, prior={}, sources={}, limits=limits_of(setup)).expected_calls()


@dataclass(frozen=True)
class FailedRun:
    """A run that can be confirmed.

    Attributes:
        store: the database.
        run: the run's row.
        recorded: the run.
        setup: of its replays.
        points: its decision points, see `check`.
        is_verified: whether a replay with this setup was identical and failed as well.
    """

    store: Store
    run: RunSummary
    recorded: Trajectory
    setup: Setup
    points: tuple[DecisionPoint, ...]
    is_verified: bool = False

    def stored(self) -> Prepared | None:
        """Return the run's last experiment if it has this setup, to be continued; None otherwise.

        An earlier one than the last is not continued: the thresholds of the last count its contrasts.

        Raises:
            NotConfirmable: a stored plan cannot be read.
            StorageError: the database does not answer.
        """
        known = _stored_plans(self.store, self.run)
        if not known:
            return None
        plan, shape = known[-1]
        if shape["setup"] != self.setup.to_plain() or plan.fingerprint != self.run.fingerprint:
            return None
        refused = tuple(RefusedFix(*each) for each in shape["refused"])
        return Prepared(plan, self._experiment(shape, plan.plan_id), refused, len(known))

    def check_fixes(self) -> None:
        """Check a person's fixes as far as that takes no oracle; nothing is started.

        Raises:
            ConfigurationError: one of them would not be tried.
        """
        setup = replace(self.setup, oracle=())
        _check_fixes(fixes_of(self.recorded, self.points, None, setup, self.run.outcome_reason)[1])

    def verified(self) -> tuple[FailedRun, tuple[Mask, ...]]:
        """Replay the run without a change; return it with the masks that its replays need besides, and these.

        Raises:
            NotConfirmable: the oracle takes the answer for right, or the replay is not identical even with masks.
            ResetFailed: the state outside the program could not be restored.
            OSError: the command cannot be started.
        """
        check_oracle(self.recorded, self.setup)
        try:
            if not self.setup.outside_state:
                verify(self.recorded, self.setup)
            return replace(self, is_verified=True), ()
        except NotConfirmable as reason:
            try:
                masks, _ = propose(self.recorded, self.setup.with_task(self.recorded.task))
            except NotMaskable as other:
                raise NotConfirmable(f"{reason}. {other}") from None
            pairs = (*self.setup.masks, *(each.pair for each in masks))
            return replace(self, setup=replace(self.setup, masks=pairs)), masks

    def plan(self, limits: ExperimentLimits | None = None) -> Prepared:
        """Check the oracle, replay a run that is not verified without a change, and store the plan of a new experiment.

        The judge's newest verdict is its prior, and a source of fixes. Its thresholds count the contrasts of all earlier experiments of the run, so that trying again with
        other fixes or another program is not rewarded.

        Args:
            limits: sizes of the experiment; those of `limits_of` if absent.

        Raises:
            NotConfirmable: the run cannot be confirmed; no plan was stored.
            ConfigurationError: a person's fix names a step that cannot be corrected, or would not be tried.
            ResetFailed: the state outside the program could not be restored.
            OSError: the command cannot be started.
            StorageError: the database does not answer.
        """
        setup, run = self.setup, self.run
        if not self.is_verified:
            check_oracle(self.recorded, setup)
            if not setup.outside_state:
                verify(self.recorded, setup)
        known = _stored_plans(self.store, run)
        verdict = load_judged(self.store, run.trace_id, project=run.project)
        fixes, refused = fixes_of(self.recorded, self.points, verdict, setup, run.outcome_reason)
        _check_fixes(refused)
        prior = prior_of(verdict, self.points)
        shape: dict[str, Any] = {
            "setup": setup.to_plain(),
            "prior": {str(step): value for step, value in prior.items()},
            "sources": {str(step): [_plain(fix) for fix in given] for step, given in fixes.items()},
            "limits": asdict(limits or limits_of(setup)),
            "refused": [[each.step, each.source, each.reason] for each in refused],
            "earlier": self._earlier(known),
        }
        if setup.outside_state:  # asks for no replay, so that it tests nothing
            shape["planned"] = known[-1][1]["planned"] if known else 0
        else:
            shape["planned"] = self._experiment(shape, "").conclusion().planned_contrasts
        number = len(known) + 1
        text = json.dumps(shape, ensure_ascii=False)
        plan = plan_of(self.store, run, text, name=_name(number))
        return Prepared(plan, self._experiment(_read(plan), plan.plan_id), refused, number)

    def _earlier(self, known: Sequence[tuple[ReplayPlan, dict[str, Any]]]) -> dict[str, Any] | None:
        """Return the conclusion of the last experiment as JSON: later thresholds count its contrasts.

        Its evidence is kept only where the program, its state and the run are the same.
        """
        if not known:
            return None
        plan, shape = known[-1]
        same = plan.fingerprint == self.run.fingerprint and all(
            shape["setup"].get(key) == value for key, value in self.setup.program.items()
        )
        if same:
            experiment = self._experiment(shape, plan.plan_id)
            for result in results_of(self.store, plan):
                experiment.tell(result)
            return experiment.conclusion().model_dump(mode="json")
        return Confirmation(planned_contrasts=shape["planned"]).model_dump(mode="json")

    def _experiment(self, shape: Mapping[str, Any], plan_id: str) -> Experiment:
        earlier = shape["earlier"]
        return Experiment(
            self.points,
            prior={int(step): float(value) for step, value in shape["prior"].items()},
            sources={
                int(step): tuple(Fix(*each) for each in given)
                for step, given in shape["sources"].items()
            },
            limits=ExperimentLimits(**shape["limits"]),
            seed=int(plan_id[:8] or "0", 16),
            not_isolated=self.setup.outside_state,
            earlier=Confirmation.model_validate(earlier) if earlier else None,
            plan_id=plan_id,
            agents={
                each.index: each.agent for each in self.recorded.steps if each.kind is StepKind.TOOL
            },
        )


def _stored_plans(store: Store, run: RunSummary) -> list[tuple[ReplayPlan, dict[str, Any]]]:
    plans: list[tuple[ReplayPlan, dict[str, Any]]] = []
    while True:
        plan = stored_plan(store, run.project, run.trace_id, name=_name(len(plans) + 1))
        if plan is None:
            return plans
        plans.append((plan, _read(plan)))


def _name(number: int) -> str:
    return CONFIRM if number == 1 else f"{CONFIRM} {number}"


def fixes_of(
    recorded: Trajectory,
    points: Sequence[DecisionPoint],
    verdict: Verdict | None,
    setup: Setup,
    outcome_reason: str,
) -> tuple[dict[int, tuple[Fix, ...]], tuple[RefusedFix, ...]]:
    """Return the corrections that are tried, by step, and those that are not."""
    judged, refused = judge_fix(recorded, verdict, points, setup.executed)
    sources = Sources(
        person=setup.fixes,
        resample=setup.resample,
        stronger_model=setup.stronger_model,
        judge=judged,
        results=setup.results,
        answers=tuple(
            filter(
                None, (setup.expected, outcome_reason, recorded.outcome_reason, recorded.expected)
            )
        ),
    )
    oracle = oracle_of(setup.oracle, setup.check_timeout)
    planned, others = planned_fixes(recorded, points, sources, oracle, live_tools=setup.executed)
    return planned, (*refused, *others)


def _check_fixes(refused: Sequence[RefusedFix]) -> None:
    own = [
        f"The fix of step {each.step}: {each.reason}" for each in refused if each.source == "person"
    ]
    if own:
        raise ConfigurationError(
            f"{' '.join(own)} Nothing was run. Leave it out, or see by --allow-answer whether the program succeeds when "
            "it is given the answer, which proves nothing."
        )


def _plain(fix: Fix) -> list[Any]:
    """Return a fix as a list, without the mark of results as earlier versions wrote it."""
    return [fix.source, fix.text, fix.model, *[True] * fix.result]


def _read(plan: ReplayPlan) -> dict[str, Any]:
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
