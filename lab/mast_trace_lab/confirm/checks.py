"""Checks whether a run can be confirmed, before any model is asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mast_trace.replay.recording import tape_of
from mast_trace_judge.arms import Arm
from mast_trace_judge.decision_points import decision_points
from mast_trace_lab.confirm.execution import arm_settings
from mast_trace_lab.program.oracle import oracle_of
from mast_trace_lab.program.reset import reset
from mast_trace_lab.replay.arm_runner import run_arm
from mast_trace_lab.replay.unfit import NotConfirmable

if TYPE_CHECKING:
    from mast_trace.trajectory import Trajectory
    from mast_trace_judge.decision_points import Point
    from mast_trace_lab.program.setup import Setup

_OUTCOMES: Final = {"success": "succeeded"}


def check(recorded: Trajectory, setup: Setup) -> tuple[Point, ...]:
    """Return the decision points of a run that can be confirmed; nothing is started.

    Raises:
        NotConfirmable: the run has not failed, or has no decision point.
        NotReplayable: the record lacks data that a replay needs.
    """
    tape_of(recorded, *setup.earlier, live_tools=setup.live_tools)
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
    if setup.reset:
        reset(setup.reset, setup.check_timeout)
    done = run_arm(
        recorded,
        setup.command,
        Arm("verify"),
        settings=arm_settings(setup, recorded.task, max_calls=0),
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
