"""A simulated program: replays whose outcomes follow known success rates, without any process."""

from __future__ import annotations

import random
import threading
from typing import TYPE_CHECKING

from judge.store.invented_replays import run

from mast_trace.trajectory import Invocation, Trajectory
from mast_trace_judge.arms import ArmResult, Fix
from mast_trace_judge.decision_points import DecisionPoint
from mast_trace_judge.store.replay_plans import plan_of
from mast_trace_lab.confirm.confirm import Confirming
from mast_trace_lab.confirm.statistics import Experiment
from mast_trace_lab.program.budget import Budget, CallCost
from mast_trace_lab.program.setup import Setup

if TYPE_CHECKING:
    from mast_trace_collector.storage import Store
    from mast_trace_lab.program.budget import ReplayAllowance, ReplayTrial

DECISIONS, PLANTED = 6, 2
POINTS = tuple(
    DecisionPoint(step, f"agent {step}", f"span {step}", "...") for step in range(DECISIONS)
)
RECORDED = Trajectory(
    run().trace_id,
    (),
    tuple(
        Invocation("model", "", f"span {step}", "", 0, 1, model="m") for step in range(DECISIONS)
    ),
    outcome="failure",
)
COST = CallCost(0.001, 0.004)


class Killed(BaseException):
    """The process ends here, as by SIGKILL: nothing that follows is done."""


class Program:
    """The simulated program, whose only error is at `PLANTED`.

    Attributes:
        calls: live calls that it has made, those of killed replays included.
        replays: (phase, operator, step) of each replay that was started.
        fault: called with the number of each replay before it ends.
    """

    def __init__(self, rate: float = 0.9, *, greedy: bool = False, **result) -> None:
        self._rate = rate
        self._greedy = greedy
        self._result = result
        self._lock = threading.Lock()
        self._random = random.Random(7)
        self.calls = 0
        self.replays: list[tuple[str, str, int]] = []
        self.fault = lambda _number: None

    def __call__(self, trial: ReplayTrial, allowance: ReplayAllowance) -> ArmResult:
        """Run one replay."""
        arm = trial.arm
        wanted = 10 * trial.calls if self._greedy else trial.calls
        with self._lock:
            number = len(self.replays)
            self.replays.append((trial.phase, arm.operator, arm.step))
            made = min(wanted, allowance.calls)
            self.calls += made
            lucky = self._random.random() < self._rate
        self.fault(number)
        corrected = arm.operator in {"resample", "fix", "model"} and arm.step <= PLANTED
        free = arm.operator == "start" or (arm.operator == "keep" and arm.step < PLANTED)
        told = {"status": "ok", "success": lucky and (corrected or free), "models": ("m",)}
        if wanted > made:
            told = {"status": "over budget", "success": None}
        given = {"live_calls": made, "cost_usd": made * COST.mean, **told, **self._result}
        return ArmResult(arm, **given)


def confirming(store: Store, program: Program, budget: Budget | None = None, **more) -> Confirming:
    """Return a confirmation of the simulated run, as a new process makes it."""
    plan = plan_of(store, run(), "{}")
    setup = more.pop("setup", Setup(("program",)))
    experiment = Experiment(
        POINTS,
        prior={PLANTED: 0.5},
        sources={point.step: (Fix("resample"),) for point in POINTS},
        seed=1,
        plan_id=plan.plan_id,
    )
    given = {"cost": COST, "pauses": (0.0, 0.0), **more}
    return Confirming(
        store, plan, experiment, RECORDED, setup, program, budget or Budget(), **given
    )
