"""Runs one replay of an experiment: reset, program, oracle."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mast_trace_lab.program.process import oracle_of, reset
from mast_trace_lab.program.setup import task_environment
from mast_trace_lab.replay.arm_runner import ArmSettings, run_arm
from mast_trace_lab.replay.runner import Limits

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mast_trace.trajectory import Trajectory
    from mast_trace_judge.arms import ArmResult
    from mast_trace_judge.llm.budget import Price
    from mast_trace_lab.confirm.bounds import ReplayAllowance
    from mast_trace_lab.confirm.conducting import Execute
    from mast_trace_lab.confirm.statistics import ReplayTrial
    from mast_trace_lab.program.setup import Setup


class OracleUndecided(Exception):
    """The oracle could not tell whether an answer is right; the text says why."""


def arm_settings(
    setup: Setup,
    task: str,
    *,
    max_calls: int | None,
    prices: Mapping[str, Price] | None = None,
) -> ArmSettings:
    """Return the settings of one replay of a run with this task, or of the run that it continues."""
    begun = setup.earlier[0].task if setup.earlier else task
    return ArmSettings(
        limits=Limits(
            timeout=setup.timeout,
            live_tools=tuple(setup.live_tools),
            hosts=tuple(setup.hosts),
            max_calls=max_calls,
            output="discarded",
            environment={**task_environment(begun), **setup.environment},
            parent=setup.parent,
        ),
        oracle=_judging(setup),
        prices=prices or {},
        earlier=setup.earlier,
        keeps_earlier=True,
    )


def executing(
    recorded: Trajectory, setup: Setup, prices: Mapping[str, Price] | None = None
) -> Execute:
    """Return a function that runs one replay of a run.

    The function raises ResetFailed if the state outside the program cannot be restored, and OSError if
    the program cannot be started.
    """

    def execute(trial: ReplayTrial, allowance: ReplayAllowance) -> ArmResult:
        if setup.reset and trial.phase != "score":
            reset(setup.reset, setup.check_timeout)
        settings = arm_settings(setup, recorded.task, max_calls=allowance.calls, prices=prices)
        return run_arm(recorded, setup.command, trial.arm, settings=settings)

    return execute


def _judging(setup: Setup) -> Callable[[str], bool] | None:
    oracle = oracle_of(setup.oracle, setup.check_timeout)
    if oracle is None:
        return None

    def judge(answer: str) -> bool:
        opinion = oracle.ask(answer)
        if opinion.success is None:
            raise OracleUndecided(opinion.reason)
        return opinion.success

    return judge
