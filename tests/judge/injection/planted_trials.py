"""A planted fault, and trials of it on programs with known rates."""

from __future__ import annotations

from random import Random

from mast_trace_judge.arms import ArmResult, ReplayArm
from mast_trace_lab.inject.experiment import STARTS
from mast_trace_lab.inject.faults import Fault
from mast_trace_lab.inject.sites import Change
from mast_trace_lab.inject.trial import Trial

FAULT = Fault("a" * 32, "2.6-number", Change(3, "answer", "There are 21."), "reader", 3)


def result(arm: ReplayArm, success: bool | None, calls_hash: str = "", **more: object) -> ArmResult:
    return ArmResult(
        arm, "ok" if success is not None else "timeout", success, calls_hash=calls_hash, **more
    )


STARTS_ALIKE = tuple(
    ArmResult(ReplayArm("start"), "ok", True, phase="start", calls_hash="whole", live_calls=5)
    for _ in range(STARTS)
)
"""Live replays of a whole program that makes the same requests each time."""


def decided(
    faulty: float,
    restored: float,
    seed: int,
    hashes: int = 1000,
    clean: tuple[ArmResult, ...] = STARTS_ALIKE,
) -> Trial:
    """Return the decided trial of a program with these success rates."""
    rng, trial = Random(seed), Trial(FAULT, clean=clean)
    while arm := trial.ask():
        rate = restored if arm == trial.restore else faulty
        trial.tell(result(arm, rng.random() < rate, str(rng.randrange(hashes))))
    return trial
