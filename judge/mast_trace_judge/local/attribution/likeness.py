"""Likeness of a run to the runs that a profile was fitted to.

A run's shape is a handful of numbers, independent of names and topics. A profile keeps the mean and
the spread of each over its own runs: within them its probabilities were measured, outside their
validity is unknown.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, field
from statistics import fmean, pstdev
from typing import TYPE_CHECKING

from mast_trace.trajectory import StepKind
from mast_trace_judge.local.rules._evidence import by_user

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mast_trace.trajectory import Trajectory

SHAPE = ("steps", "agents", "tools", "code", "length")
"""The numbers of a shape, in their order."""
_COVERED = 0.95
"""The share of a profile's own runs that counts as like them."""
_LEAST_SPREAD = 0.05
"""A number that is the same in all of a profile's runs may still differ a little."""


@dataclass(frozen=True)
class Likeness:
    """The shapes of a profile's runs.

    Attributes:
        means: of each number of `SHAPE`.
        spreads: the standard deviation of each.
        reach: the distance within which 95 % of the runs lie.
    """

    means: Mapping[str, float] = field(default_factory=dict)
    spreads: Mapping[str, float] = field(default_factory=dict)
    reach: float = 0.0

    def covers(self, trajectory: Trajectory) -> bool:
        """Return whether a run is as near to the middle of the profile's runs as these are."""
        return bool(self.means) and self.distance(shape_of(trajectory)) <= self.reach

    def distance(self, shape: Mapping[str, float]) -> float:
        """Return the root mean square of a shape's deviations, each in standard deviations."""
        squares = [
            ((shape[name] - self.means[name]) / max(self.spreads[name], _LEAST_SPREAD)) ** 2
            for name in SHAPE
        ]
        return math.sqrt(fmean(squares))


def likeness_of(runs: Sequence[Trajectory]) -> Likeness:
    """Measure the shapes of a profile's runs."""
    shapes = [shape_of(run) for run in runs]
    if not shapes:
        return Likeness()
    means = {name: round(fmean(shape[name] for shape in shapes), 4) for name in SHAPE}
    spreads = {name: round(pstdev(shape[name] for shape in shapes), 4) for name in SHAPE}
    measured = Likeness(means, spreads)
    ordered = sorted(measured.distance(shape) for shape in shapes)
    reach = ordered[min(len(ordered) - 1, math.ceil(_COVERED * len(ordered)) - 1)]
    return Likeness(means, spreads, round(reach + 5e-5, 4))


def shape_of(trajectory: Trajectory) -> dict[str, float]:
    """Return the shape of a run; counts and lengths as logarithms, the rest as shares of steps."""
    steps = trajectory.steps
    count = max(1, len(steps))
    return {
        "steps": math.log1p(len(steps)),
        "agents": math.log1p(len({step.agent for step in steps if not by_user(step)})),
        "tools": sum(step.kind is StepKind.TOOL for step in steps) / count,
        "code": sum("```" in step.text for step in steps) / count,
        "length": fmean([math.log1p(len(step.text)) for step in steps]) if steps else 0.0,
    }


def run_hash(trajectory: Trajectory) -> str:
    """Return 16 hexadecimal digits of a run's task and texts, the same wherever it is read from."""
    digest = hashlib.sha256(trajectory.task.encode("utf-8", "surrogatepass"))
    for step in trajectory.steps:
        digest.update(b"\0" + step.text.encode("utf-8", "surrogatepass"))
    return digest.hexdigest()[:16]
