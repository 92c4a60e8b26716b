"""One experiment about one simulated run, and its outcome against the truth."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

from random_programs import points
from simpler_methods import Replays

from mast_trace_lab.confirm.statistics import Experiment

if TYPE_CHECKING:
    from collections.abc import Callable

    from random_programs import Policy
    from run_classes import Class

    from mast_trace_judge.arms import ArmResult
    from mast_trace_judge.confirmation import Confirmation


@dataclass(frozen=True)
class Outcome:
    """The outcome of the experiments about one run.

    Attributes:
        status: the word of the conclusion.
        origin: ``right``, ``wrong`` or ``none``: the step that was called the origin. Where there is
            nothing to confirm, each is wrong.
        point: likewise for the point of no return.
        cleared: whether the true origin or point of no return was called refuted.
        replays: replays that were asked for, scores and verification included.
        calls: live calls.
    """

    status: str
    origin: str
    point: str
    cleared: bool
    replays: int
    calls: int


def simulate(kind: Class, seed: int) -> Outcome:
    """Make a run of a class and experiment on it."""
    draw = random.Random(f"{kind.name} {seed}")
    policy = kind.make(draw)
    found, replays, calls = None, 0, 0
    for night in range(kind.nights):
        found = _experiment(kind, policy, draw, seed + 1000 * night, found)
        replays += found.replays
        calls += found.live_calls
        if found.origin is not None:
            break
    assert found is not None
    return Outcome(
        status=found.status,
        origin=_origin(found, policy),
        point=_compared(found.point_of_no_return, policy.point),
        cleared=bool({policy.origin, policy.point} & set(found.refuted)),
        replays=replays,
        calls=calls,
    )


def _experiment(
    kind: Class, policy: Policy, draw: random.Random, seed: int, earlier: Confirmation | None
) -> Confirmation:
    told: list[ArmResult] = []
    while True:
        experiment = Experiment(
            points(policy.length),
            prior=policy.prior,
            sources=policy.fixes,
            seed=seed,
            earlier=earlier,
        )
        for result in told:
            experiment.tell(result)
        while (trial := experiment.ask()) is not None:
            result = policy.replay(trial, draw, len(told))
            experiment.tell(result)
            told.append(result)
            if kind.stops and len(told) % kind.stops == 0:
                break
        else:
            return experiment.conclusion()


def _origin(found: Confirmation, policy: Policy) -> str:
    """Compare the origin; for two errors that are each enough, compare the two steps."""
    if found.status != "overdetermined":
        return _compared(found.origin, policy.origin)
    if policy.joint is None:
        return "wrong"
    names = found.text.split(" does:")[0]
    return "right" if all(f"step {step} " in names for step in policy.joint[:2]) else "wrong"


def baseline(kind: Class, seed: int, method: Callable[[Replays], int | None]) -> Outcome:
    """Make the run that `simulate` makes and apply another method to it."""
    draw = random.Random(f"{kind.name} {seed}")
    policy = kind.make(draw)
    replays = Replays(policy, draw)
    origin = _compared(method(replays), policy.origin)
    return Outcome("", origin, "none", cleared=False, replays=replays.made, calls=replays.calls)


def _compared(found: int | None, truth: int | None) -> str:
    if found is None:
        return "none"
    return "right" if found == truth else "wrong"
