"""Simulated programs whose success rate after every step is known exactly."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mast_trace_judge.arms import ArmResult, Fix
from mast_trace_judge.decision_points import DecisionPoint

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Mapping, Sequence

    from mast_trace_lab.program.budget import ReplayTrial

LENGTH = 20
"""Steps of a run, where a class does not say otherwise."""

RESAMPLE = Fix("resample")
FIXES = (Fix("person", "corrected"), RESAMPLE, Fix("stronger model"), Fix("judge", "repaired"))
"""Fixes in the order in which `mast-trace confirm` tries them."""


@dataclass
class Policy:
    """A failed run of a program that errs at random.

    Attributes:
        rates: V by position: that of the start first, then that of each step.
        origin: the step at which success first fell; None if there is nothing to confirm.
        point: the point of no return; None if there is none.
        prior: the judge's probabilities by step.
        sources: fixes by step; None for one at each step, which asks the model again.
        fixed: success rates after a fix of the judge, by step; every other fix of step t draws the
            answer again and so succeeds with V(t - 1).
        joint: two steps and the success rate when both are fixed.
        noise: chance that the oracle tells the opposite.
        drift: addition to every rate, by number of replays before.
        censored: chance that a successful replay of a kept step has no outcome.
        quiet: every call but the last is deterministic, so that all replays ask alike.
        shared: replays of an arm share one draw, as with a cache.
    """

    rates: Sequence[float]
    origin: int | None
    point: int | None
    prior: Mapping[int, float]
    sources: Mapping[int, Sequence[Fix]] | None = None
    fixed: Mapping[int, float] = field(default_factory=dict)
    joint: tuple[int, int, float] | None = None
    noise: float = 0.0
    drift: Callable[[int], float] | None = None
    censored: float = 0.0
    quiet: bool = False
    shared: bool = False
    _drawn: dict[object, bool] = field(default_factory=dict)

    @property
    def length(self) -> int:
        """Number of steps."""
        return len(self.rates) - 1

    @property
    def fixes(self) -> Mapping[int, Sequence[Fix]]:
        """Fixes by step."""
        return self.sources or dict.fromkeys(range(self.length), (RESAMPLE,))

    def rate(self, trial: ReplayTrial) -> float:
        """Return the success rate of a replay."""
        arm = trial.arm
        if arm.operator in {"verify", "score"}:
            return 0.0
        if arm.operator in {"start", "keep"}:
            return self.rates[arm.step + 1]
        steps = (arm.step, *(step for step, _ in arm.also))
        if self.joint is not None and {*self.joint[:2]} <= {*steps}:
            return self.joint[2]
        if arm.fix is not None and arm.fix.source == "judge" and arm.step in self.fixed:
            return self.fixed[arm.step]
        return self.rates[arm.step]

    def replay(self, trial: ReplayTrial, draw: random.Random, number: int) -> ArmResult:
        """Draw the result of a replay.

        Args:
            trial: what is replayed.
            draw: the source of chance.
            number: replays before it.
        """
        arm, rate = trial.arm, self.rate(trial)
        checked = arm.operator in {"verify", "score"}
        if self.drift is not None and not checked:
            rate = min(1.0, max(0.0, rate + self.drift(number)))
        success = draw.random() < rate
        if self.shared:
            success = self._drawn.setdefault(arm, success)
        if arm.operator != "verify" and draw.random() < self.noise:
            success = not success
        alike = self.quiet or self.shared
        lost = arm.operator == "keep" and success and draw.random() < self.censored
        return ArmResult(
            arm=arm,
            status="blocked" if lost else "ok",
            success=None if lost else success,
            phase=trial.phase,
            pair=trial.pair,
            live_calls=trial.calls,
            calls_hash="alike" if alike else str(draw.random()),
            answer=str(success) if alike else str(draw.random()),
        )


def points(length: int) -> list[DecisionPoint]:
    """Return the decision points of a simulated run."""
    return [DecisionPoint(step, f"agent {step % 3}", f"{step:016x}", "") for step in range(length)]


def judged(draw: random.Random, *errors: int, length: int = LENGTH) -> dict[int, float]:
    """Return the three candidates of a judge with probabilities.

    An error is the first candidate in 40 %, the second in 15 % and the third in 10 %; one whose place is
    taken by another error gets the next free one.
    """
    found = [step for step in range(length) if step not in errors]
    draw.shuffle(found)
    found = found[:3]
    free = [0, 1, 2]
    for error in errors:
        place = draw.choices((0, 1, 2, 3), (0.4, 0.15, 0.1, 0.35))[0]
        if place in {0, 1, 2}:
            place = place if place in free else free[0]
            free.remove(place)
            found[place] = error
    return dict(zip(found, (0.5, 0.3, 0.2), strict=True))
