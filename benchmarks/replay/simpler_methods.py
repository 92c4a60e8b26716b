"""Methods that one tries first, on the same simulated runs."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from random_programs import RESAMPLE

from mast_trace_judge.arms import ReplayArm
from mast_trace_lab.program.budget import ReplayTrial

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

    from random_programs import Policy

_REPLAYS: Final = 4
_LEVELS: Final = (0.03, 0.015, 0.01)
"""Levels of Fisher's test after 4, 8 and 12 replays of each arm: 5 % together at most."""


class Replays:
    """Replays of one simulated run.

    Attributes:
        made: replays so far.
        calls: live calls so far.
        length: steps of the run.
    """

    def __init__(self, policy: Policy, draw: random.Random) -> None:
        self.made = self.calls = 0
        self.length = policy.length
        self._policy, self._draw = policy, draw

    def fix(self, step: int) -> bool:
        """Replay the run with another answer at a step, of the judge if it has one."""
        fix = self._policy.fixes.get(step, (RESAMPLE,))[-1]
        return self._replay(ReplayArm("fix", step, fix), step)

    def keep(self, step: int) -> bool:
        """Replay the run with all kept up to and including a step."""
        return self._replay(ReplayArm("keep", step), step)

    def _replay(self, arm: ReplayArm, step: int) -> bool:
        trial = ReplayTrial(arm, "pairs", calls=self.length - 1 - step)
        found = self._policy.replay(trial, self._draw, self.made)
        self.made += 1
        self.calls += trial.calls
        return bool(found.success)


def earliest_flip(replays: Replays) -> int | None:
    """Return the earliest step whose fix turns failure into success, tried once at each step."""
    return next((step for step in range(replays.length) if replays.fix(step)), None)


def staged_fisher(replays: Replays) -> int | None:
    """Return the first step that never succeeds when kept, if Fisher's test proves a fix of it.

    Each step is kept four times; the test takes 4, 8 and 12 new replays of each arm.
    """
    zero = (
        step
        for step in range(replays.length)
        if not any(replays.keep(step) for _ in range(_REPLAYS))
    )
    step = next(zero, None)
    if step is None:
        return None
    fix = keep = made = 0
    for level in _LEVELS:
        fix += sum([replays.fix(step) for _ in range(_REPLAYS)])
        keep += sum([replays.keep(step) for _ in range(_REPLAYS)])
        made += _REPLAYS
        if fisher(fix, keep, made) <= level:
            return step
        if fix <= keep:
            return None
    return None


def fisher(fix: int, keep: int, runs: int) -> float:
    """Return the one-sided p-value of Fisher's exact test for two arms of equal size."""
    both = fix + keep
    ways = [math.comb(runs, hits) * math.comb(runs, both - hits) for hits in range(both + 1)]
    return sum(ways[fix:]) / sum(ways)


BASELINES: Final[dict[str, Callable[[Replays], int | None]]] = {
    "earliest flip": earliest_flip,
    "first zero, staged Fisher": staged_fisher,
}
