"""Simulated programs whose success rate after every step is known exactly."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mast_trace_judge.replay.arms import ArmResult, Fix
from mast_trace_judge.replay.points import Point

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

    from mast_trace_judge.replay.statistics import Trial

LENGTH = 20


@dataclass
class Policy:
    """A failed run of a program.

    Attributes:
        rates: V by position, that of the start first, then of each step.
        fixed: success rate after a fix, by position and origin of the fix.
        joint: success rate after both fixes of a pair of positions.
        origin: position of the first fall; None if there is nothing to confirm.
        point: position of the point of no return.
        noise: chance that the oracle gives the wrong answer.
        drift: change of every success rate after so many replays.
    """

    rates: list[float]
    fixed: Callable[[int, Fix], float]
    origin: int | None
    point: int | None
    joint: dict[tuple[int, int], float] = field(default_factory=dict)
    noise: float = 0.0
    drift: Callable[[int], float] = lambda _: 0.0

    def run(self, trial: Trial, draw: random.Random, number: int) -> ArmResult:
        """Draw the result of a replay."""
        arm = trial.arm
        if arm.operator in {"verify", "score"}:
            rate = 0.0
        elif arm.operator in {"start", "keep"}:
            rate = self.rates[arm.step + 1]
        else:
            assert arm.fix is not None
            rate = self.fixed(arm.step, arm.fix)
        if arm.operator not in {"verify", "score"}:
            rate = min(1.0, max(0.0, rate + self.drift(number)))
        success = draw.random() < rate
        if arm.operator != "verify" and draw.random() < self.noise:
            success = not success
        return ArmResult(
            arm=arm,
            status="ok",
            success=success,
            phase=trial.phase,
            pair=trial.pair,
            live_calls=trial.calls,
            calls_hash=f"{draw.random()}",
            answer=f"{draw.random()}",
        )


def points() -> list[Point]:
    """Return the decision points of a simulated run."""
    return [Point(step, f"agent{step % 3}", f"{step:016x}", "") for step in range(LENGTH)]
