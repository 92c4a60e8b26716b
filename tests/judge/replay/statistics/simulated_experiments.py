"""Experiments on runs whose success rates are known, without any program."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import TYPE_CHECKING

from mast_trace_judge.arms import ArmResult, Fix
from mast_trace_judge.decision_points import DecisionPoint
from mast_trace_lab.confirm.statistics import Experiment

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mast_trace_lab.program.budget import ReplayTrial

LENGTH = 12
RESAMPLE, JUDGE = Fix("resample"), Fix("judge", "the price is 79")
POINTS = [
    DecisionPoint(2 * each + 1, f"agent {each}", f"{each:016x}", "text") for each in range(LENGTH)
]
"""Decisions are the odd steps: those between them are tool calls."""

EVERYWHERE: Mapping[int, Sequence[Fix]] = {each.step: (RESAMPLE,) for each in POINTS}
Rate = "Callable[[Trial], float]"


def index(step: int) -> int:
    return (step - 1) // 2


def at_random(trial: ReplayTrial, success: bool | None, draw: random.Random) -> ArmResult:
    return ArmResult(
        arm=trial.arm,
        status="ok" if success is not None else "timeout",
        success=success,
        reason="" if success is not None else "killed after 60 s",
        phase=trial.phase,
        pair=trial.pair,
        live_calls=trial.calls,
        cost_usd=0.01 * trial.calls,
        calls_hash=str(draw.random()),
        answer=str(draw.random()),
    )


def alike(trial: ReplayTrial, success: bool | None) -> ArmResult:
    found = at_random(trial, success, random.Random(1))
    return replace(found, calls_hash=str(trial.arm), answer=str(success))


def single(error: int, rate: float) -> Callable[[ReplayTrial], float]:
    """V is a rate before a position and 0 from there on; each fix draws the answer again."""

    def chance(trial: ReplayTrial) -> float:
        arm = trial.arm
        if arm.operator in {"verify", "score"}:
            return 0.0
        kept = index(arm.step) if arm.operator in {"start", "keep"} else index(arm.step) - 1
        return rate if arm.operator == "start" or kept < error else 0.0

    return chance


def made(**options: object) -> Experiment:
    return Experiment(**{"points": POINTS, "prior": {}, "sources": EVERYWHERE, **options})  # type: ignore[arg-type]


def conduct(
    experiment: Experiment, chance: Callable[[ReplayTrial], float], seed: int = 0
) -> list[ArmResult]:
    draw, told = random.Random(seed), []
    while (trial := experiment.ask()) is not None:
        assert experiment.ask() == trial
        told.append(at_random(trial, draw.random() < chance(trial), draw))
        experiment.tell(told[-1])
    return told


def determined(experiment: Experiment, chance: Callable[[ReplayTrial], float]) -> int:
    """Conduct an experiment on a deterministic program."""
    while (trial := experiment.ask()) is not None:
        experiment.tell(alike(trial, chance(trial) > 0.5))
    return experiment.conclusion().replays
