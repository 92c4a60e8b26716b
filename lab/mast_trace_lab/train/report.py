"""A report on a training, scored as `mast-trace judge bench` scores a judge, and its held-out curve."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Final

from mast_trace.exceptions import ConfigurationError
from mast_trace_judge.study.bench import Report, methods
from mast_trace_judge.study.bench.methods import places_seen
from mast_trace_judge.study.bench.rendering import write_markdown
from mast_trace_judge.study.bench.scoring import Prediction, Score, score
from mast_trace_judge.study.labelled import LabelledRun, same_agent

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from mast_trace_lab.train.examples import Division, Example, Reward


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


REPORT: Final = "report.md"


def report_of(division: Division, curve: Sequence[CurvePoint]) -> Report:
    """Score the model before and after its training on the held-out runs, beside simple baselines.

    Runs of operators that training has not seen, and runs that people labelled, are scored apart as
    well.

    Args:
        division: the examples of the training.
        curve: at least the looks before and after it.
    """
    held = division.held_out
    subsets: dict[str, Sequence[Example]] = {"held-out": held}
    seen = {each.operator for each in division.train}
    subsets["held-out-unseen-operators"] = [
        each for each in held if each.operator and each.operator not in seen
    ]
    subsets["held-out-people"] = [each for each in held if each.source == "person"]
    scores: list[Score] = []
    in_sample: dict[str, int] = {}
    for name, examples in subsets.items():
        if examples and (name == "held-out" or len(examples) < len(held)):
            scores += _scores(name, examples, curve)
            in_sample[name] = len(places_seen([_labelled(each) for each in examples]))
    before, after = curve[0], curve[-1]
    return Report(
        scores=tuple(scores), in_sample=in_sample, notes=tuple(_notes(division, before, after))
    )


def write_report(report: Report, folder: Path) -> Path:
    """Write the report as Markdown, its plots beside it; return the file.

    Raises:
        OSError: it cannot be written.
    """
    return write_markdown(report, folder, file=REPORT)


def _scores(name: str, examples: Sequence[Example], curve: Sequence[CurvePoint]) -> list[Score]:
    runs = [_labelled(each) for each in examples]
    rows = {
        "random step": methods.random_step(runs),
        "always step 0": methods.fixed_step(runs, 0),
        "rules and profiles, without a model": methods.shipped(runs),
        "the model before": _said(examples, curve[0].steps),
    }
    if curve[-1].at:
        rows[f"the model after {curve[-1].at} steps"] = _said(examples, curve[-1].steps)
    return [score(method, name, runs, given) for method, given in rows.items()]


def _labelled(example: Example) -> LabelledRun:
    return LabelledRun(
        subset=example.source,
        name=example.id,
        trajectory=example.run,
        group=example.group,
        step=example.step,
        agent=example.agent,
        success=False,
    )


def _said(examples: Sequence[Example], steps: Mapping[str, int | None]) -> list[list[Prediction]]:
    found = []
    for each in examples:
        step = steps[each.id]
        agent = "" if step is None else each.run.steps[step].agent
        found.append([Prediction(() if step is None else (step,), agent)])
    return found


def _notes(division: Division, before: CurvePoint, after: CurvePoint) -> list[str]:
    held = division.held_out
    right = [
        (before.steps[each.id] == each.step, after.steps[each.id] == each.step) for each in held
    ]
    gained, lost = right.count((False, True)), right.count((True, False))
    notes = [
        (
            f"{len(division.train)} examples were trained on, {len(held)} held out; no {division.by} "
            "is on both sides."
        ),
        f"Of the held-out runs, {gained} got a right step by the training and {lost} lost it.",
        f"Readable answers: {100 * before.readable:.0f} % before, {100 * after.readable:.0f} % after.",
        (
            "An interval is Wilson's at 95 %, and takes runs for independent of each other; runs of one "
            "origin are not, so that it is too narrow where many share one."
        ),
    ]
    if division.by == "origin":
        notes.append(
            "Nearly all runs have one task: the figures hold for more runs of it, not for other tasks."
        )
    if division.unused:
        notes.append(
            f"{division.unused} examples of held-out operators were neither trained on nor scored."
        )
    if any(each.source == "injection" for each in (*division.train, *held)):
        notes.append(
            "Planted faults are in these figures: they say little about agreement with people, who are "
            "scored apart where they labelled held-out runs."
        )
    return notes
