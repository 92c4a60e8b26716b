"""One experiment about one simulated run, and its outcome against the truth."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

from policies import points

from mast_trace_judge.replay.statistics import Experiment

if TYPE_CHECKING:
    from classes import Class
    from policies import Policy

    from mast_trace_judge.replay.arms import ArmResult
    from mast_trace_judge.replay.confirmation import Confirmation


@dataclass(frozen=True)
class Outcome:
    """The outcome of the experiments about one run.

    Attributes:
        status: the word of the conclusion.
        origin: ``right``, ``wrong`` or ``none``: the step that was called the origin. Where there is
            nothing to confirm, each is wrong.
        point: likewise for the point of no return.
        replays: replays of the program, scores and verification left out.
        calls: live calls.
    """

    status: str
    origin: str
    point: str
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
        origin=_compared(found.origin, policy.origin),
        point=_compared(found.point_of_no_return, policy.point),
        replays=replays,
        calls=calls,
    )


def _experiment(
    kind: Class, policy: Policy, draw: random.Random, seed: int, earlier: Confirmation | None
) -> Confirmation:
    told: list[ArmResult] = []
    while True:
        experiment = Experiment(
            points(), prior=policy.prior, sources=policy.sources, seed=seed, earlier=earlier
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


def _compared(found: int | None, truth: int | None) -> str:
    if found is None:
        return "none"
    return "right" if found == truth else "wrong"
