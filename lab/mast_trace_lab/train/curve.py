"""The held-out curve of a training: one line of JSON for each look at the held-out examples."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Final

from mast_trace.exceptions import ConfigurationError
from mast_trace_judge.study.datasets.labelled import same_agent

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from mast_trace_lab.train.examples import Example
    from mast_trace_lab.train.reward import Reward

CURVE: Final = "curve.jsonl"


@dataclass(frozen=True)
class CurvePoint:
    """A look at the held-out examples.

    Attributes:
        at: optimiser step; 0 is before the training.
        reward: mean reward.
        readable: share of answers that passed the format gate.
        step: share of right steps.
        agent: share of right agents among the examples that blame one; None where none does.
        steps: the step that each answer names, by example; None where the format gate is closed.
    """

    at: int
    reward: float
    readable: float
    step: float
    agent: float | None
    steps: Mapping[str, int | None]


def point_of(
    at: int, examples: Sequence[Example], named: Sequence[int | None], reward: Reward
) -> CurvePoint:
    """Score the steps that a model has named for examples."""
    pairs = list(zip(examples, named, strict=True))
    blamed = [
        step is not None and same_agent(each.run.steps[step].agent, each.agent)
        for each, step in pairs
        if each.agent
    ]
    return CurvePoint(
        at=at,
        reward=fmean(0.0 if step is None else reward.of_step(step, each) for each, step in pairs),
        readable=fmean(step is not None for step in named),
        step=fmean(step == each.step for each, step in pairs),
        agent=fmean(blamed) if blamed else None,
        steps={each.id: step for each, step in pairs},
    )


def read_curve(folder: Path) -> list[CurvePoint]:
    """Read the curve of a training so far.

    Raises:
        ConfigurationError: the file holds something else.
    """
    path = folder / CURVE
    if not path.exists():
        return []
    found: dict[int, CurvePoint] = {}
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        try:
            point = CurvePoint(**json.loads(line))
        except (ValueError, TypeError) as error:
            raise ConfigurationError(f"{path}:{number} is no point of a curve: {error}") from error
        found[point.at] = point
    return sorted(found.values(), key=lambda point: point.at)


def write_curve(folder: Path, points: Sequence[CurvePoint]) -> None:
    """Write the curve, in place of the earlier one.

    Raises:
        OSError: the file cannot be written.
    """
    path = folder / CURVE
    partly = path.with_name(f"{path.name}.part")
    partly.write_text("".join(json.dumps(asdict(each)) + "\n" for each in points), "utf-8")
    partly.replace(path)
